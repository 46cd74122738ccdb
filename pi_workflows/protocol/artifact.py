"""Values as views hold them: themselves, escaped, or a reference whose content is fetched.

The client protocol, "Content references". Content is believed only when run, path, media type,
length and digest are those of the reference; it is given as it is, and never searched for further
references.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Final, Literal

from pydantic import Field

from pi_workflows.base import canonical
from pi_workflows.base.blob import MediaType
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import CONTENT_CHUNK_BYTES_MAX, FRAME_DEPTH_MAX
from pi_workflows.protocol.views import ContentChunk, ViewContent
from pi_workflows.protocol.wire import Count, Sha256, Text, WireModel

_REFERENCE: Final = "$artifact"
_ESCAPE: Final = "$escaped"
_EXTENSIONS: Final[dict[MediaType, str]] = {"application/json": "json", "text/plain": "txt"}


class Artifact(WireModel):
    """What stands in a view for a value that is too large for it.

    Attributes:
        path: What its content is asked for by.
        media_type: How to read it.
        content_bytes: Its size in bytes.
        sha256: Its digest.
        opaque: It is a value of its own, not a part of the view.
    """

    path: Text
    media_type: MediaType
    content_bytes: Annotated[Count, Field(alias="bytes")]
    sha256: Sha256
    opaque: Literal[True]


def artifact_of(value: Json) -> Artifact | None:
    """Return what a value of a view refers to, None when it is the value itself.

    Raises:
        ProtocolViolation: `contentMismatch`: it is a reference, and a broken one.
    """
    if not isinstance(value, dict) or len(value) != 1 or _REFERENCE not in value:
        return None
    try:
        found = Artifact.parse(value[_REFERENCE])
    except PayloadInvalid:
        raise _mismatch() from None
    if found.path != f"artifacts/sha256/{found.sha256}.{_EXTENSIONS[found.media_type]}":
        raise _mismatch()
    return found


def plain(value: Json) -> Json:
    """Return a value without the marks that keep its look-alikes of references apart."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and isinstance(marked := value.get(_ESCAPE), dict):
        return {name: plain(member) for name, member in marked.items()}
    return {name: plain(member) for name, member in value.items()}


class Download:
    """A value of a run view on its way to being whole, without a socket.

    Args:
        run_id: The run whose view it stood in.
        value: The value, or a reference to its content.

    Raises:
        ProtocolViolation: `contentMismatch`: the reference is broken.
    """

    def __init__(self, run_id: str, value: Json) -> None:
        """Begin with nothing fetched."""
        self._run_id = run_id
        self._artifact = artifact_of(value)
        self._content = bytearray()
        self._is_complete = self._artifact is None
        self._value = plain(value) if self._artifact is None else None

    @property
    def wanted(self) -> ViewContent | None:
        """The part to ask for now; None when the value is whole."""
        if self._is_complete or self._artifact is None:
            return None
        return ViewContent(path=self._artifact.path, offset=len(self._content))

    @property
    def value(self) -> Json:
        """The value as the run has it, once nothing is wanted."""
        assert self._is_complete, "the value is not whole yet"
        return self._value

    def take(self, receipt: Json) -> None:
        """Take the answer to `wanted`.

        Args:
            receipt: `pi-workflows.content-chunk.v1`.

        Raises:
            ProtocolViolation: `contentMismatch`: the content is not the one that the reference
                names.
        """
        artifact = self._artifact
        assert artifact is not None, "nothing was wanted"
        try:
            chunk = ContentChunk.parse(receipt)
        except PayloadInvalid:
            raise _mismatch() from None
        offset, piece = len(self._content), _piece(chunk.data)
        named = (chunk.run_id, chunk.path, chunk.media_type, chunk.content_bytes, chunk.sha256)
        of_it = (self._run_id, artifact.path, artifact.media_type, artifact.content_bytes)
        end = offset + len(piece)
        is_complete = end == artifact.content_bytes
        if (
            named != (*of_it, artifact.sha256)
            or (chunk.offset, chunk.next_offset, chunk.complete) != (offset, end, is_complete)
            or not (piece or is_complete)
            or end > artifact.content_bytes
        ):
            raise _mismatch()
        self._content += piece
        if is_complete:
            self._value = _read(artifact, bytes(self._content))
            self._is_complete = True


def _piece(data: str) -> bytes:
    """Return the bytes of a chunk."""
    try:
        piece = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _mismatch() from None
    if len(piece) > CONTENT_CHUNK_BYTES_MAX:
        raise _mismatch()
    return piece


def _read(artifact: Artifact, content: bytes) -> Json:
    """Return the value that a whole content stands for."""
    if hashlib.sha256(content).hexdigest() != artifact.sha256:
        raise _mismatch()
    try:
        if artifact.media_type == "text/plain":
            return content.decode()
        return canonical.decode(content, depth_max=FRAME_DEPTH_MAX)
    except (UnicodeDecodeError, PayloadInvalid):
        raise _mismatch() from None


def _mismatch() -> ProtocolViolation:
    """Return the error of content that is not what its reference says."""
    return ProtocolViolation(
        "The server sent content that its reference does not name.", code="contentMismatch"
    )
