"""A content-addressed value: bytes, their SHA-256 digest, and how to read them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_workflows.base import canonical

MediaType: TypeAlias = Literal["application/json", "text/plain"]


@dataclass(frozen=True, slots=True)
class Blob:
    """A value on its way into `blobs`.

    Attributes:
        digest: SHA-256 of the content, 32 bytes.
        media_type: `application/json` (canonical) or `text/plain` (UTF-8).
        content: The bytes themselves.
    """

    digest: bytes
    media_type: MediaType
    content: bytes

    @property
    def hex(self) -> str:
        """The digest as 64 hex digits, the form in which events and frames name it."""
        return self.digest.hex()

    @classmethod
    def json(cls, value: canonical.Json) -> Blob:
        """Encode a JSON value canonically. Raises PayloadInvalid as `canonical.encode` does."""
        return cls.of(canonical.encode(value), "application/json")

    @classmethod
    def text(cls, value: str) -> Blob:
        """Encode text as UTF-8. Raises PayloadInvalid when it holds a lone surrogate."""
        return cls.of(canonical.utf8(value), "text/plain")

    @classmethod
    def of(cls, content: bytes, media_type: MediaType) -> Blob:
        """Address bytes that are already encoded."""
        return cls(hashlib.sha256(content).digest(), media_type, content)
