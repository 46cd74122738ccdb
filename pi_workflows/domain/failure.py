"""Why something failed, as it is stored: a stable code for programs and a message for people."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of an attempt, an effect, a queue entry or a run.

    Attributes:
        code: A stable camelCase identifier.
        message: One or more lines for people.
    """

    code: str
    message: str

    def blob(self) -> Blob:
        """Return the stored form."""
        return Blob.json({"code": self.code, "message": self.message})

    @classmethod
    def parse(cls, content: bytes) -> Failure:
        """Read the stored form. Raises Corrupt when the bytes are not one."""
        value = canonical.decode(content)
        if isinstance(value, dict):
            code, message = value.get("code"), value.get("message")
            if isinstance(code, str) and isinstance(message, str):
                return cls(code, message)
        raise Corrupt("A stored error is not one.", code="blobMedia")
