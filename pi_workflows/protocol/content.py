"""Large values in verified parts.

Named by their digest, sent in pieces, believed only when the digest is right.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob, MediaType
from pi_workflows.base.errors import LimitExceeded, ProtocolViolation
from pi_workflows.base.limits import CONTENT_PART_BYTES_MAX, INLINE_BYTES_MAX, VALUE_BYTES_MAX
from pi_workflows.protocol.wire import AnyJson, Count, Sha256, WireModel

ContentBytes: TypeAlias = Annotated[int, Field(ge=0, le=VALUE_BYTES_MAX)]
"""The size of a value in bytes."""


class BlobRef(WireModel):
    """A value by its name: digest, size and media type."""

    sha256: Sha256
    content_bytes: Annotated[ContentBytes, Field(alias="bytes")]
    media_type: MediaType

    @classmethod
    def of(cls, blob: Blob) -> BlobRef:
        """Name a value that the peer has or is about to get."""
        return cls(sha256=blob.hex, content_bytes=len(blob.content), media_type=blob.media_type)


class JsonRef(WireModel):
    """A JSON value itself."""

    value: Annotated[AnyJson, Field(alias="json")]

    def blob(self, *, bytes_max: int = INLINE_BYTES_MAX) -> Blob:
        """Return the value as a blob.

        Args:
            bytes_max: How many bytes may travel inline here.

        Raises:
            LimitExceeded: `inlineTooLarge`: the value had to be named by its digest.
        """
        blob = Blob.json(self.value)
        if len(blob.content) > bytes_max:
            raise LimitExceeded(
                f"an inline value of {len(blob.content)} bytes is over the limit of {bytes_max}",
                code="inlineTooLarge",
            )
        return blob


def _ref_kind(value: object) -> str:
    """Say which form a reference has, by the member that only one of them has."""
    is_inline = "json" in value if isinstance(value, dict) else isinstance(value, JsonRef)
    return "json" if is_inline else "blob"


Ref: TypeAlias = Annotated[
    Annotated[BlobRef, Tag("blob")] | Annotated[JsonRef, Tag("json")],
    Discriminator(_ref_kind),
]
"""A value in a frame: inline, or by the name under which it was put or can be got."""


def ref(blob: Blob, *, inline_bytes_max: int = INLINE_BYTES_MAX) -> BlobRef | JsonRef:
    """Return the reference to a blob: JSON up to the bound is inline, all else is named.

    Args:
        blob: The value.
        inline_bytes_max: How many bytes may still travel inline.
    """
    if blob.media_type == "application/json" and len(blob.content) <= inline_bytes_max:
        return JsonRef(value=canonical.fragment(blob.content))
    return BlobRef.of(blob)


class ContentPut(WireModel):
    """A part of a value that a later proposal names. Parts come in order, without gaps."""

    type: Literal["content.put"] = "content.put"
    sha256: Sha256
    media_type: MediaType
    content_bytes: Annotated[ContentBytes, Field(alias="bytes")]
    offset: Count
    data: str


class ContentPart(WireModel):
    """A part of a value that was asked for."""

    type: Literal["content.part"] = "content.part"
    sha256: Sha256
    media_type: MediaType
    content_bytes: Annotated[ContentBytes, Field(alias="bytes")]
    offset: Count
    data: str


class ContentMissing(WireModel):
    """The answer to a digest that the run does not name."""

    type: Literal["content.part"] = "content.part"
    sha256: Sha256
    error: str


class ContentGet(WireModel):
    """Asks for a value: the answer is its parts in order, or one part with an error."""

    type: Literal["content.get"] = "content.get"
    sha256: Sha256


def puts(blob: Blob) -> Iterator[ContentPut]:
    """Yield the parts that send a value to the server."""
    for offset, data in _pieces(blob.content):
        yield ContentPut(
            sha256=blob.hex,
            media_type=blob.media_type,
            content_bytes=len(blob.content),
            offset=offset,
            data=data,
        )


def parts(blob: Blob) -> Iterator[ContentPart]:
    """Yield the parts that answer a `content.get`."""
    for offset, data in _pieces(blob.content):
        yield ContentPart(
            sha256=blob.hex,
            media_type=blob.media_type,
            content_bytes=len(blob.content),
            offset=offset,
            data=data,
        )


def _pieces(content: bytes) -> Iterator[tuple[int, str]]:
    """Yield offset and base64 text of each piece; empty content is one empty piece."""
    for offset in range(0, len(content) or 1, CONTENT_PART_BYTES_MAX):
        piece = content[offset : offset + CONTENT_PART_BYTES_MAX]
        yield offset, base64.b64encode(piece).decode()


class Assembly:
    """Puts one value together from its parts."""

    def __init__(self, first: ContentPut | ContentPart) -> None:
        """Expect the value that this part belongs to. The part itself is given to `add`."""
        self._sha256 = first.sha256
        self._media_type: MediaType = first.media_type
        self._content_bytes = first.content_bytes
        self._content = bytearray()

    def add(self, part: ContentPut | ContentPart) -> Blob | None:
        """Take the next part.

        Args:
            part: The part that continues where the last one ended.

        Returns:
            The value when it is complete and its digest is right, else None.

        Raises:
            ProtocolViolation: `contentMismatch`: another value, a gap, no base64, too much, or a
                wrong digest.
        """
        named = (part.sha256, part.media_type, part.content_bytes)
        if named != (self._sha256, self._media_type, self._content_bytes):
            raise _mismatch("belongs to another value")
        if part.offset != len(self._content):
            raise _mismatch("does not continue the last one")
        piece = _piece(part.data)
        if not piece and self._content_bytes:
            raise _mismatch("is empty")
        self._content += piece
        missing_bytes = self._content_bytes - len(self._content)
        if missing_bytes < 0:
            raise _mismatch("passes the end of its value")
        if missing_bytes:
            return None
        blob = Blob.of(bytes(self._content), self._media_type)
        if blob.hex != self._sha256:
            raise _mismatch("completes a value of another digest")
        return blob


def _piece(data: str) -> bytes:
    """Return the bytes of a part."""
    try:
        piece = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _mismatch("is not base64") from None
    if len(piece) > CONTENT_PART_BYTES_MAX:
        raise _mismatch("is over its limit")
    return piece


def _mismatch(what: str) -> ProtocolViolation:
    """Return the violation of a part that does not fit."""
    return ProtocolViolation(f"a content part {what}", code="contentMismatch")
