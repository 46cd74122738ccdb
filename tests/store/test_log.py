"""The log: numbers that are never given twice, and digests that chain a resource's events."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import EVENT_PAYLOAD_BYTES_MAX, EVENTS_SLICE_MAX
from pi_workflows.base.sql import Statement
from pi_workflows.store.log import events, high_water_mark, stored_event_digest
from pi_workflows.store.records import EventRecord
from pi_workflows.store.scratch import create_scratch
from tests.store.bench import (
    INSERT_RESOURCE,
    NOW_MS,
    add_events,
    add_resource,
    append,
    open_store,
    raw,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.store.database import Store
    from pi_workflows.store.records import StoredEvent

LINKS = Statement("links", "SELECT hex(blob_hash) FROM event_blobs ORDER BY event_seq, blob_hash")


def log_of(store: Store) -> list[StoredEvent]:
    """Return the whole log."""
    with store.snapshot() as snapshot:
        return list(events(snapshot))


def test_an_event_comes_back_as_it_went_in(store: Store) -> None:
    """Every column and the payload's bytes are stored as given."""
    payload = Blob.json({"v": 1, "é": ["x", 1.5]})
    with store.transaction() as transaction:
        add_resource(transaction, "run-1")
        seq = transaction.append(
            EventRecord(
                event_id="event-1",
                resource_id="run-1",
                resource_revision=1,
                event_type="run.queued",
                actor_type="human",
                actor_id="someone",
                lease_generation=7,
                payload=payload.content,
                payload_hash=payload.digest,
                recorded_at_ms=NOW_MS,
            )
        )
        assert transaction.payload(seq) == payload.content
    (event,) = log_of(store)
    assert event[:9] == (
        1, "event-1", "run-1", 1, "run.queued", "human", "someone", 7, payload.digest,
    )  # fmt: skip
    assert event.recorded_at_ms == NOW_MS
    assert event.payload == payload.content


def test_the_digest_is_what_the_contract_says(store: Store) -> None:
    """SHA-256 over the canonical JSON of the other columns and the resource's previous digest."""
    add_events(store, "run-1", 2)
    first, second = log_of(store)
    expected = hashlib.sha256(
        canonical.encode(
            {
                "event_seq": 2,
                "event_id": "event-run-1-2",
                "resource_id": "run-1",
                "resource_revision": 2,
                "event_type": "run.started",
                "actor_type": "system",
                "actor_id": None,
                "lease_generation": None,
                "payload_hash": second.payload_hash.hex(),
                "recorded_at": NOW_MS + 2,
                "previous_event_digest": first.event_digest.hex(),
            }
        )
    ).digest()
    assert second.event_digest == expected
    assert stored_event_digest(first, None) == first.event_digest


def test_each_resource_has_a_chain_of_its_own(store: Store) -> None:
    """Events of several resources interleave, and each digest continues its own resource's."""
    with store.transaction() as transaction:
        for name in ("run-1", "run-2"):
            add_resource(transaction, name)
        for revision in (1, 2, 3):
            for name in ("run-1", "run-2"):
                append(transaction, name, revision)
    previous: dict[str, bytes] = {}
    for event in log_of(store):
        expected = stored_event_digest(event, previous.get(event.resource_id))
        assert event.event_digest == expected
        previous[event.resource_id] = event.event_digest
    assert len(set(previous.values())) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"event_seq": 9},
        {"event_id": "other"},
        {"resource_id": "other"},
        {"resource_revision": 9},
        {"event_type": "other"},
        {"actor_type": "human"},
        {"actor_id": "x"},
        {"lease_generation": 1},
        {"payload_hash": b"\0" * 32},
        {"recorded_at_ms": 9},
    ],
)
def test_every_column_is_in_the_digest(store: Store, changed: dict[str, object]) -> None:
    """Changing any column of a stored event changes its digest."""
    add_events(store, "run-1", 2)
    first, second = log_of(store)
    other = second._replace(**changed)  # type: ignore[arg-type]  # a table of columns
    assert stored_event_digest(other, first.event_digest) != second.event_digest
    assert stored_event_digest(second, None) != second.event_digest


def test_a_number_is_never_given_twice(tmp_path: Path) -> None:
    """Deleting the newest event does not free its number: the stored mark goes on."""
    store = open_store(tmp_path)
    assert add_events(store, "run-1", 3) == [1, 2, 3]
    store.close()
    connection = raw(tmp_path / "state.sqlite")
    connection.execute("DELETE FROM events WHERE event_seq = 3")
    connection.execute("UPDATE resources SET revision = 2")
    connection.close()
    store = open_store(tmp_path)
    with store.transaction() as transaction:
        assert append(transaction, "run-1", 3, {"v": 2}) == 4
    with store.snapshot() as snapshot:
        assert high_water_mark(snapshot) == 4
        assert [event.event_seq for event in events(snapshot)] == [1, 2, 4]
    store.close()


def test_a_gap_in_a_resource_is_our_bug(store: Store) -> None:
    """An event whose resource has no event before it is refused, but for the first."""
    with store.transaction() as transaction:
        add_resource(transaction, "run-1")
        with pytest.raises(AssertionError, match="a gap"):
            append(transaction, "run-1", 2)
        append(transaction, "run-1", 1)
        with pytest.raises(AssertionError, match="a gap"):
            append(transaction, "run-1", 3)


def test_a_revision_has_one_event(store: Store) -> None:
    """Two events at one revision of a resource are refused by the schema."""
    with store.transaction() as transaction:
        add_resource(transaction, "run-1")
        append(transaction, "run-1", 1)
        event = EventRecord("other", "run-1", 1, "t", "system", None, None, b"{}", b"", 0)
        payload = Blob.json({})
        with pytest.raises(AssertionError, match="UNIQUE"):
            transaction.append(replace(event, payload_hash=payload.digest))


def test_an_event_needs_its_resource(store: Store) -> None:
    """The resource's row is written before its event: replay applies them in that order too."""
    with store.transaction() as transaction:
        with pytest.raises(AssertionError, match="FOREIGN KEY"):
            transaction.append(_event(1))
        transaction.projection.write(INSERT_RESOURCE, resource_id="run-1", at=0)
        transaction.append(_event(1))


def _event(revision: int, payload: Blob | None = None) -> EventRecord:
    """Return an event of run-1."""
    body = payload or Blob.json({"revision": revision})
    return EventRecord(
        f"event-{revision}", "run-1", revision, "t", "system", None, None, body.content,
        body.digest, 0,
    )  # fmt: skip


def test_a_payload_has_a_limit(store: Store) -> None:
    """A payload over 64 KiB is our bug: bodies are blobs that the payload names."""
    with store.transaction() as transaction:
        transaction.projection.write(INSERT_RESOURCE, resource_id="run-1", at=0)
        fits = Blob.json("x" * (EVENT_PAYLOAD_BYTES_MAX - 2))
        transaction.append(_event(1, fits))
        with pytest.raises(AssertionError, match="payload too large"):
            transaction.append(_event(2, Blob.json("x" * EVENT_PAYLOAD_BYTES_MAX)))


def test_an_event_keeps_the_blobs_that_it_names(store: Store) -> None:
    """Each blob that a payload names is linked once, and must be stored already."""
    named = (Blob.text("a"), Blob.text("b"), Blob.text("a"))
    with store.transaction() as transaction:
        add_resource(transaction, "run-1")
        append(transaction, "run-1", 1, blobs=named)
    with store.snapshot() as snapshot:
        assert snapshot.all(str, LINKS) == sorted(blob.hex.upper() for blob in named[:2])
    with store.transaction() as transaction:
        missing = replace(_event(2), blobs=(Blob.text("missing").digest,))
        with pytest.raises(AssertionError, match="FOREIGN KEY"):
            transaction.append(missing)


def test_the_log_is_read_in_slices(store: Store) -> None:
    """Iterating gives every event in order, across slices, from where one asks."""
    count = 2 * EVENTS_SLICE_MAX
    add_events(store, "run-1", count)
    with store.snapshot() as snapshot:
        assert [event.event_seq for event in events(snapshot)] == list(range(1, count + 1))
        tail = [event.event_seq for event in events(snapshot, count - 2)]
    assert tail == [count - 1, count]


def test_a_missing_payload_is_damage(tmp_path: Path) -> None:
    """An event whose payload is gone is reported, not skipped."""
    store = open_store(tmp_path)
    add_events(store, "run-1", 3)
    store.close()
    connection = raw(tmp_path / "state.sqlite")
    connection.pragma("foreign_keys", "OFF")
    connection.execute(
        "DELETE FROM blobs WHERE blob_hash = (SELECT payload_hash FROM events WHERE event_seq = 2)"
    )
    connection.close()
    store = open_store(tmp_path)
    with store.snapshot() as snapshot, pytest.raises(Corrupt, match="event 2"):
        list(events(snapshot))
    store.close()


def test_a_log_is_restored_as_it_stands(store: Store) -> None:
    """A rebuild gets the same rows, numbers and digests, and goes on above the same mark."""
    add_events(store, "run-1", 3)
    original = log_of(store)
    with create_scratch(None) as scratch:
        scratch.set_high_water_mark(10)
        with scratch.transaction() as transaction:
            add_resource(transaction, "run-1")
            for event in original:
                body = Blob(event.payload_hash, "application/json", event.payload)
                transaction.put_blob(body, event.recorded_at_ms)
                transaction.restore(event, (event.payload_hash,))
        with scratch.snapshot() as snapshot:
            assert list(events(snapshot)) == original
            assert high_water_mark(snapshot) == 10
            assert len(snapshot.all(str, LINKS)) == 3
        with scratch.transaction() as transaction:
            assert append(transaction, "run-1", 4) == 11
