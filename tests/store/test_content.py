"""Content: stored once under its digest, and never anything else."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import (
    BLOB_REHASH_BYTES_MAX,
    DOCUMENTS_KEPT_BYTES_MAX,
    DOCUMENTS_KEPT_MAX,
)
from pi_workflows.base.sql import Statement
from tests.store.bench import NOW_MS, open_store, raw

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.base.blob import MediaType
    from pi_workflows.store.database import Store

STORED = Statement(
    "stored", "SELECT media_type, byte_length, content, created_at FROM blobs WHERE blob_hash = :h"
)


class Stored(NamedTuple):
    """A row of `blobs`."""

    media_type: str
    byte_length: int
    content: bytes
    created_at: int


def stored(store: Store, digest: bytes) -> Stored | None:
    """Return what is stored under a digest."""
    with store.snapshot() as snapshot:
        return snapshot.one(Stored, STORED, h=digest)


def put(store: Store, *blobs: Blob) -> None:
    """Store each blob in a transaction of its own, a millisecond apart."""
    for number, blob in enumerate(blobs):
        with store.transaction() as transaction:
            transaction.put_blob(blob, NOW_MS + number)


@pytest.mark.parametrize("content", [b"5", b"true", b"{}"])
@pytest.mark.parametrize(
    "order", list(permutations(["application/json", "text/plain", "application/json"], 2))
)
def test_json_wins_over_text(store: Store, content: bytes, order: tuple[MediaType, ...]) -> None:
    """Bytes stored as text and as JSON, in either order, are JSON; nothing else of them changes."""
    put(store, *(Blob.of(content, media_type) for media_type in order))
    row = stored(store, Blob.of(content, "text/plain").digest)
    assert row == Stored("application/json", len(content), content, NOW_MS)


def test_text_stays_text(store: Store) -> None:
    """Text that comes again as text is adopted as it is."""
    put(store, Blob.text("hello"), Blob.text("hello"))
    assert stored(store, Blob.text("hello").digest) == Stored("text/plain", 5, b"hello", NOW_MS)


def test_equal_content_is_stored_once(store: Store) -> None:
    """The same content in one transaction or in two is one row."""
    count = Statement("count", "SELECT count(*) FROM blobs")
    with store.transaction() as transaction:
        for _ in range(3):
            transaction.put_blob(Blob.json({"a": 1}), NOW_MS)
        assert transaction.read.one(int, count) == 1


@pytest.mark.parametrize("size", [0, 1, BLOB_REHASH_BYTES_MAX, BLOB_REHASH_BYTES_MAX + 1])
def test_content_of_any_size_comes_back(store: Store, size: int) -> None:
    """Empty, small and large content is read back byte for byte."""
    blob = Blob.of(b"x" * size, "text/plain")
    put(store, blob, blob)
    with store.snapshot() as snapshot:
        assert snapshot.blob(blob.digest) == blob.content


@pytest.mark.parametrize(
    "blob",
    [
        Blob(b"\0" * 32, "text/plain", b"hello"),
        Blob(b"\0" * 31, "text/plain", b"hello"),
        Blob(Blob.text("x").digest, "text/html", b"x"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_name_is_our_bug(store: Store, blob: Blob) -> None:
    """A digest of other content, one of another length and an unknown media type are refused."""
    with pytest.raises(AssertionError), store.transaction() as transaction:
        transaction.put_blob(blob, NOW_MS)
    assert stored(store, blob.digest) is None


def test_other_bytes_under_a_digest_are_damage(tmp_path: Path) -> None:
    """A stored value that is not what its digest says is found when the value comes again."""
    store = open_store(tmp_path)
    put(store, Blob.text("hello"))
    store.close()
    connection = raw(tmp_path / "state.sqlite")
    connection.execute("UPDATE blobs SET content = x'68656c6c00'")
    connection.close()
    store = open_store(tmp_path)
    with pytest.raises(Corrupt, match="not what its digest says"):
        put(store, Blob.text("hello"))
    store.close()


def test_a_missing_value_is_damage(store: Store) -> None:
    """Reading a digest that nothing is stored under is Corrupt, and names the digest."""
    digest = Blob.text("missing").digest
    with store.snapshot() as snapshot, pytest.raises(Corrupt, match=digest.hex()):
        snapshot.blob(digest)


class Parser:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def parse(self, content: bytes) -> str:
        """Return the text."""
        self.calls += 1
        return content.decode()


def test_a_document_is_parsed_once(store: Store) -> None:
    """A parsed document is remembered across reads, by parser and digest."""
    parser, other = Parser(), Parser()
    blob = Blob.text("document")
    with store.transaction() as transaction:
        transaction.put_blob(blob, NOW_MS)
        assert transaction.read.document(parser.parse, blob.digest) == "document"
    for _ in range(3):
        with store.snapshot() as snapshot:
            assert snapshot.document(parser.parse, blob.digest) == "document"
            assert snapshot.document(other.parse, blob.digest) == "document"
    assert parser.calls == other.calls == 1


def test_documents_are_bounded_in_number(store: Store) -> None:
    """The document that was used longest ago is forgotten first."""
    parser = Parser()
    blobs = [Blob.text(str(number)) for number in range(DOCUMENTS_KEPT_MAX + 1)]
    put(store, *blobs)
    with store.snapshot() as snapshot:
        for blob in blobs[:-1]:
            snapshot.document(parser.parse, blob.digest)
        snapshot.document(parser.parse, blobs[0].digest)
        snapshot.document(parser.parse, blobs[-1].digest)
        assert parser.calls == len(blobs)
        snapshot.document(parser.parse, blobs[0].digest)
        assert parser.calls == len(blobs)
        snapshot.document(parser.parse, blobs[1].digest)
        assert parser.calls == len(blobs) + 1


def test_documents_are_bounded_in_bytes(store: Store) -> None:
    """Large documents push others out, and one that is too large is never kept."""
    parser = Parser()
    half = DOCUMENTS_KEPT_BYTES_MAX // 2
    sizes = (half, half, 1, DOCUMENTS_KEPT_BYTES_MAX + 1)
    blobs = [Blob.text(letter * size) for letter, size in zip("abcd", sizes, strict=True)]
    put(store, *blobs)
    with store.snapshot() as snapshot:
        for blob in blobs:
            snapshot.document(parser.parse, blob.digest)
        for blob, fresh in zip(blobs[::-1], [1, 0, 0, 1], strict=True):
            before = parser.calls
            snapshot.document(parser.parse, blob.digest)
            assert parser.calls - before == fresh
