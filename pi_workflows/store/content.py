"""Content by its digest: stored once, read by name, remembered when it was parsed."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import (
    BLOB_REHASH_BYTES_MAX,
    DOCUMENTS_KEPT_BYTES_MAX,
    DOCUMENTS_KEPT_MAX,
)
from pi_workflows.base.sql import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_workflows.base.blob import Blob
    from pi_workflows.store.cursors import Cursors

T = TypeVar("T")

_SQL = load(__package__, "content.sql")
_INSERT = _SQL["insert_blob"]
_EXISTING = _SQL["existing_blob"]
_RAISE_MEDIA_TYPE = _SQL["raise_media_type"]
_CONTENT = _SQL["blob_content"]
_MEDIA_TYPES = frozenset({"application/json", "text/plain"})
_DIGEST_BYTES = 32


def put_blob(cursors: Cursors, blob: Blob, now_ms: int) -> None:
    """Store content under its digest, or adopt what is stored there already.

    A value that is stored as text and comes again as JSON is JSON from then on (the state contract,
    section 3, step 10).

    Args:
        cursors: The open transaction.
        blob: The content, its digest and its media type.
        now_ms: Wall time of the command, kept with content that is new.

    Raises:
        AssertionError: The digest is not that of the content, or the media type is unknown.
        Corrupt: Other bytes are stored under the digest.
    """
    content = blob.content
    assert blob.media_type in _MEDIA_TYPES, f"media type {blob.media_type!r}"
    assert len(blob.digest) == _DIGEST_BYTES, "a digest of another length"
    # Larger values were hashed before the transaction began and are not hashed again inside it.
    if len(content) <= BLOB_REHASH_BYTES_MAX:
        assert hashlib.sha256(content).digest() == blob.digest, "a digest of other content"
    inserted = cursors.change(
        _INSERT,
        {
            "blob_hash": blob.digest,
            "media_type": blob.media_type,
            "byte_length": len(content),
            "content": content,
            "created_at": now_ms,
        },
    )
    if not inserted:
        _adopt(cursors, blob)


def restore_blob(cursors: Cursors, blob: Blob, created_at_ms: int) -> None:
    """Store content as another database stores it, unless it is there already.

    Args:
        cursors: The open transaction of a rebuild.
        blob: The content; the caller has compared it with its digest.
        created_at_ms: When the other database got it.
    """
    cursors.change(
        _INSERT,
        {
            "blob_hash": blob.digest,
            "media_type": blob.media_type,
            "byte_length": len(blob.content),
            "content": blob.content,
            "created_at": created_at_ms,
        },
    )


def _adopt(cursors: Cursors, blob: Blob) -> None:
    """Compare what is stored with what comes again."""
    key = {"blob_hash": blob.digest}
    ((media_type, same),) = cursors.rows(_EXISTING, {**key, "content": blob.content})
    if not same:
        raise Corrupt(f"Content {blob.hex} is not what its digest says; nothing was changed.")
    if media_type == "text/plain" and blob.media_type == "application/json":
        changed = cursors.change(_RAISE_MEDIA_TYPE, key)
        assert changed == 1, "a blob vanished inside a transaction"


def read_blob(cursors: Cursors, digest: bytes) -> bytes:
    """Return the content stored under a digest.

    Raises:
        Corrupt: There is none, although something names it.
    """
    rows = cursors.rows(_CONTENT, {"blob_hash": digest})
    if not rows:
        raise Corrupt(f"Content {digest.hex()} is missing; nothing was changed.")
    return cast("bytes", rows[0][0])


class _Document(NamedTuple):
    value: object
    size_bytes: int


class Documents:
    """Parsed contents, the ones used last: a digest never changes its bytes.

    Bounded in number and in the bytes that they were parsed from. A document is shared by everyone
    who asks for it and must not be changed.
    """

    __slots__ = ("_kept", "_size_bytes")

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, bytes], _Document] = OrderedDict()
        self._size_bytes = 0

    def get(self, cursors: Cursors, parse: Callable[[bytes], T], digest: bytes) -> T:
        """Return `parse` of the content under a digest.

        Raises:
            Corrupt: There is no such content.
        """
        key = (parse, digest)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return cast("T", kept.value)
        content = read_blob(cursors, digest)
        value = parse(content)
        if len(content) <= DOCUMENTS_KEPT_BYTES_MAX:
            self._kept[key] = _Document(value, len(content))
            self._size_bytes += len(content)
            self._shrink()
        return value

    def _shrink(self) -> None:
        while len(self._kept) > DOCUMENTS_KEPT_MAX or self._size_bytes > DOCUMENTS_KEPT_BYTES_MAX:
            _, dropped = self._kept.popitem(last=False)
            self._size_bytes -= dropped.size_bytes
