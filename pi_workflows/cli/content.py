"""Values as views hold them: themselves, escaped, or a reference whose content is fetched."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.cli.connection import ask
from pi_workflows.cli.reader import Reader
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import ContentChunk, ViewContent

_REFERENCE: Final = "$artifact"
_ESCAPE: Final = "$escaped"


def size_of(value: Json) -> int | None:
    """Return the bytes of the content that a value refers to; None when it is the value itself."""
    reference = _reference(value)
    size = reference.get("bytes") if reference is not None else None
    return size if isinstance(size, int) else None


def whole(server: Reader, run_id: str, value: Json) -> Json:
    """Return a value of a run view as the run has it.

    Args:
        server: The connected client, or a file.
        run_id: The run whose view it stood in.
        value: The value, or a reference to its content, which is then fetched and verified.

    Raises:
        ProtocolViolation: The content is not the one that the reference names.
        NotFound: The run is gone, or names no such content any more.
        Unavailable: As `Client.request`.
    """
    reference = _reference(value)
    if reference is None:
        return plain(value)
    path, digest = str(reference.get("path")), str(reference.get("sha256"))
    content = bytearray()
    while True:
        receipt = ask(
            server,
            Operation.VIEW_CONTENT,
            ViewContent(path=path, offset=len(content)),
            run_id=run_id,
        ).receipt
        chunk = ContentChunk.parse(receipt)
        piece = _piece(chunk)
        content += piece
        if chunk.complete:
            break
        if not piece or chunk.offset + len(piece) != chunk.next_offset:
            raise _mismatch()
    if hashlib.sha256(content).hexdigest() != digest:
        raise _mismatch()
    if reference.get("mediaType") == "text/plain":
        return content.decode()
    return canonical.decode(bytes(content))


def plain(value: Json) -> Json:
    """Return a value without the marks that keep its look-alikes of references apart."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and isinstance(marked := value.get(_ESCAPE), dict):
        return {name: plain(member) for name, member in marked.items()}
    return {name: plain(member) for name, member in value.items()}


def _reference(value: Json) -> dict[str, Json] | None:
    """Return what a value refers to, or None."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    reference = value.get(_REFERENCE)
    return reference if isinstance(reference, dict) else None


def _piece(chunk: ContentChunk) -> bytes:
    """Return the bytes of a chunk."""
    try:
        return base64.b64decode(chunk.data, validate=True)
    except (binascii.Error, ValueError):
        raise _mismatch() from None


def _mismatch() -> ProtocolViolation:
    """Return the error of content that is not what its reference says."""
    return ProtocolViolation(
        "The server sent content that its reference does not name.", code="contentMismatch"
    )
