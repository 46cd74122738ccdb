"""The stored launch options of a run.

Its source files and its client's variables: the same for every launch.
"""

from __future__ import annotations

from typing import Self

from pydantic import ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt, PayloadInvalid
from pi_workflows.definition.document import Document
from pi_workflows.definition.source import SourceFile


class LaunchOptions(Document):
    """What every launch of a run begins with (the decisions on source files and environment).

    Attributes:
        environment: The client's PATH, VIRTUAL_ENV, LANG, LC_ALL and TZ, as far as it has them.
        source_files: The workflow file first, then the helper modules beside it.
    """

    environment: dict[str, str]
    source_files: tuple[SourceFile, ...]

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Read the stored form. Raises Corrupt when the bytes are not one."""
        try:
            return cls.model_validate(canonical.decode(content), strict=False)
        except (PayloadInvalid, ValidationError) as error:
            raise Corrupt("The launch options of a run are not ones.", code="blobMedia") from error

    def blob(self) -> Blob:
        """Return the stored form."""
        return Blob.json(self.model_dump(mode="json", by_alias=True))
