"""Which files a definition came from: their digests, and the one revision over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from pi_workflows.base import canonical
from pi_workflows.base.limits import PATH_BYTES_MAX
from pi_workflows.definition.document import Document

Sha256Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SourceFile(Document):
    """One file that a definition was loaded from.

    Attributes:
        mount: The mount whose workflow it belongs to; empty for the root. The first file of a mount
            is its workflow file, the others are the helper modules that loading it imported from
            its directory, by path.
        path: Absolute, without symbolic links.
        sha256: The hex SHA-256 of its bytes.
    """

    mount: str
    path: Annotated[str, Field(pattern=r"^/", max_length=PATH_BYTES_MAX)]
    sha256: Sha256Hex


class WorkflowSource(Document):
    """The identity of a definition's source, as a run's sources store it.

    Attributes:
        type: `file`, or `builtin` for one that the package ships.
        ref: The workflow file's absolute path, or the built-in's name.
        revision: The hex SHA-256 over the list of its files.
    """

    type: Literal["file", "builtin"]
    ref: str
    revision: Sha256Hex


def source_revision(files: Iterable[SourceFile]) -> str:
    """Return the hex SHA-256 over the canonical JSON of the files, in their order."""
    listed: list[canonical.Json] = [file.model_dump(mode="json", by_alias=True) for file in files]
    return hashlib.sha256(canonical.encode(listed, field="sourceFiles")).hexdigest()
