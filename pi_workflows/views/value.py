"""A stored value as it stands in a document: itself, or a reference to its content.

The client protocol, "Content references". The bytes in `blobs` are canonical, so a value is copied
into the document and not parsed; only one that could be taken for a reference is.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, cast

from pi_workflows.base import canonical
from pi_workflows.base.blob import MediaType
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import INLINE_BYTES_MAX
from pi_workflows.base.sql import Read

_REFERENCE: Final = "$artifact"
_ESCAPE: Final = "$escaped"
# As canonical bytes these can only be keys: a quote inside a text has a backslash before it.
_ARTIFACT_KEY: Final = b'"$artifact":'
_ESCAPED_KEY: Final = b'"$escaped":'
_EXTENSIONS: Final[dict[MediaType, str]] = {"application/json": "json", "text/plain": "txt"}
_MEDIA_TYPES: Final[dict[str, MediaType]] = {
    extension: media for media, extension in _EXTENSIONS.items()
}
_PATH: Final = re.compile(r"artifacts/sha256/(?P<digest>[0-9a-f]{64})\.(?P<extension>json|txt)")


class Value(NamedTuple):
    """A stored value.

    Attributes:
        digest: SHA-256 of the content, 32 bytes.
        media_type: How to read it.
        byte_length: Its size in bytes.
        content: The bytes, when a row brought them along; None = read them when they are shown.
    """

    digest: bytes
    media_type: MediaType
    byte_length: int
    content: bytes | None

    @classmethod
    def of(
        cls,
        digest: bytes | None,
        media_type: str | None,
        byte_length: int | None,
        content: bytes | None,
    ) -> Value | None:
        """Return the value that four columns of a row name, or None when they name none."""
        if digest is None or media_type is None or byte_length is None:
            return None
        return cls(digest, cast("MediaType", media_type), byte_length, content)

    def load(self, read: Read) -> bytes:
        """Return the content."""
        return read.blob(self.digest) if self.content is None else self.content

    @property
    def path(self) -> str:
        """What a client asks for the content by."""
        return f"artifacts/sha256/{self.digest.hex()}.{_EXTENSIONS[self.media_type]}"

    def reference(self) -> bytes:
        """Return the canonical bytes of a reference to the content."""
        return canonical.encode(
            {
                _REFERENCE: {
                    "path": self.path,
                    "mediaType": self.media_type,
                    "bytes": self.byte_length,
                    "sha256": self.digest.hex(),
                    "opaque": True,
                }
            }
        )


def parse_path(path: str) -> tuple[bytes, MediaType]:
    """Read the path of a reference.

    Returns:
        The digest of the content and its media type.

    Raises:
        PayloadInvalid: It is not the path of a reference.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise PayloadInvalid(
            "path: must be the path of a content reference", code="contentPath", field="path"
        )
    return bytes.fromhex(match["digest"]), _MEDIA_TYPES[match["extension"]]


def embedded(read: Read, value: Value | None, bytes_max: int = INLINE_BYTES_MAX) -> Json:
    """Return what stands in a document for a value, None for none. The rest is as `embed`."""
    return None if value is None else canonical.fragment(embed(read, value, bytes_max))


def embed(read: Read, value: Value, bytes_max: int = INLINE_BYTES_MAX) -> bytes:
    """Return what stands in a document for a value.

    Args:
        read: Where the content is read from, when the row did not bring it.
        value: The value.
        bytes_max: A larger value, or one that is larger once escaped, becomes a reference.

    Returns:
        Canonical bytes, for `canonical.fragment`.
    """
    if value.byte_length > bytes_max:
        return value.reference()
    content = value.load(read)
    if value.media_type == "text/plain":
        shown: bytes | None = canonical.encode(content.decode())
    else:
        shown = escaped(content)
    return shown if shown is not None and len(shown) <= bytes_max else value.reference()


def escaped(content: bytes) -> bytes | None:
    """Mark every object in a value that a reader would take for a reference or for a mark.

    Args:
        content: A value in canonical form.

    Returns:
        The canonical bytes to send, which are the same ones when nothing in them is to be marked;
        None when the marks would nest it deeper than a value may be.
    """
    if _ARTIFACT_KEY not in content and _ESCAPED_KEY not in content:
        return content
    try:
        return canonical.encode(marked(canonical.decode(content)))
    except PayloadInvalid:
        return None


def marked(value: Json) -> Json:
    """Return a value with its look-alikes of references wrapped."""
    if isinstance(value, list):
        return [marked(item) for item in value]
    if not isinstance(value, dict):
        return value
    members: dict[str, Json] = {name: marked(member) for name, member in value.items()}
    is_taken = len(members) == 1 and (_REFERENCE in members or _ESCAPE in members)
    return {_ESCAPE: members} if is_taken else members
