"""The log of events: append, read back, and the digest that chains a resource's events together."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, cast

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import EVENT_PAYLOAD_BYTES_MAX, EVENTS_SLICE_MAX
from pi_workflows.base.sql import load
from pi_workflows.store.content import put_blob
from pi_workflows.store.records import EventRecord, StoredEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pi_workflows.base.canonical import Json
    from pi_workflows.base.sql import Read
    from pi_workflows.store.cursors import Cursors

_SQL = load(__package__, "log.sql")
_POSITION = _SQL["position"]
_INSERT_EVENT = _SQL["insert_event"]
_INSERT_EVENT_BLOB = _SQL["insert_event_blob"]
_PAYLOAD = _SQL["payload"]
_EVENTS_AFTER = _SQL["events_after"]
_EVENTS_OF_AFTER = _SQL["events_of_after"]
_HIGH_WATER_MARK = _SQL["high_water_mark"]


def event_digest(
    *,
    event_seq: int,
    event_id: str,
    resource_id: str,
    resource_revision: int,
    event_type: str,
    actor_type: str,
    actor_id: str | None,
    lease_generation: int | None,
    payload_hash: bytes,
    recorded_at: int,
    previous: bytes | None,
) -> bytes:
    """Return the digest of an event: every other stored column, and the resource's previous digest.

    Changing, dropping or swapping a stored event changes this digest or one after it (the state
    contract, "eventDigest").

    Args:
        event_seq: And the following: the columns of `events`, by their names.
        event_id: As above.
        resource_id: As above.
        resource_revision: As above.
        event_type: As above.
        actor_type: As above.
        actor_id: As above.
        lease_generation: As above.
        payload_hash: As above, 32 bytes.
        recorded_at: As above.
        previous: The digest of the resource's event before this one; None for its first.

    Returns:
        SHA-256 over the canonical JSON of these, digests as hex; 32 bytes.
    """
    return hashlib.sha256(
        canonical.encode(
            {
                "actor_id": actor_id,
                "actor_type": actor_type,
                "event_id": event_id,
                "event_seq": event_seq,
                "event_type": event_type,
                "lease_generation": lease_generation,
                "payload_hash": payload_hash.hex(),
                "previous_event_digest": None if previous is None else previous.hex(),
                "recorded_at": recorded_at,
                "resource_id": resource_id,
                "resource_revision": resource_revision,
            }
        )
    ).digest()


def stored_event_digest(event: StoredEvent, previous: bytes | None) -> bytes:
    """Recompute the digest of an event that was read back; compare it with `event.event_digest`."""
    return event_digest(
        event_seq=event.event_seq,
        event_id=event.event_id,
        resource_id=event.resource_id,
        resource_revision=event.resource_revision,
        event_type=event.event_type,
        actor_type=event.actor_type,
        actor_id=event.actor_id,
        lease_generation=event.lease_generation,
        payload_hash=event.payload_hash,
        recorded_at=event.recorded_at_ms,
        previous=previous,
    )


def append_event(cursors: Cursors, event: EventRecord) -> int:
    """Append an event with its payload and the links to the blobs that it names.

    Its number is one more than the highest ever given, so that pruning the newest event never frees
    a number.

    Args:
        cursors: The open transaction.
        event: The event; its resource is at `resource_revision` already.

    Returns:
        Its number.

    Raises:
        AssertionError: The payload is over its limit, or the resource's previous event is missing.
    """
    assert len(event.payload) <= EVENT_PAYLOAD_BYTES_MAX, f"{event.event_type}: payload too large"
    put_blob(
        cursors,
        Blob(event.payload_hash, "application/json", event.payload),
        event.recorded_at_ms,
    )
    previous_revision = event.resource_revision - 1
    ((mark, previous),) = cursors.rows(
        _POSITION,
        {"resource_id": event.resource_id, "previous_revision": previous_revision},
    )
    assert (previous is None) == (previous_revision == 0), f"{event.resource_id}: a gap in its log"
    event_seq = cast("int", mark) + 1
    digest = event_digest(
        event_seq=event_seq,
        event_id=event.event_id,
        resource_id=event.resource_id,
        resource_revision=event.resource_revision,
        event_type=event.event_type,
        actor_type=event.actor_type,
        actor_id=event.actor_id,
        lease_generation=event.lease_generation,
        payload_hash=event.payload_hash,
        recorded_at=event.recorded_at_ms,
        previous=cast("bytes | None", previous),
    )
    cursors.change(
        _INSERT_EVENT,
        {
            "event_seq": event_seq,
            "event_id": event.event_id,
            "resource_id": event.resource_id,
            "resource_revision": event.resource_revision,
            "event_type": event.event_type,
            "actor_type": event.actor_type,
            "actor_id": event.actor_id,
            "lease_generation": event.lease_generation,
            "payload_hash": event.payload_hash,
            "event_digest": digest,
            "recorded_at": event.recorded_at_ms,
        },
    )
    _link_blobs(cursors, event_seq, event.blobs)
    return event_seq


def restore_event(cursors: Cursors, event: StoredEvent, blobs: tuple[bytes, ...]) -> None:
    """Insert an event exactly as another database stores it; its payload is stored already.

    Args:
        cursors: The open transaction of a rebuild.
        event: The stored row, its number and digest included.
        blobs: Digests of the blobs that its payload names.
    """
    cursors.change(
        _INSERT_EVENT,
        {
            "event_seq": event.event_seq,
            "event_id": event.event_id,
            "resource_id": event.resource_id,
            "resource_revision": event.resource_revision,
            "event_type": event.event_type,
            "actor_type": event.actor_type,
            "actor_id": event.actor_id,
            "lease_generation": event.lease_generation,
            "payload_hash": event.payload_hash,
            "event_digest": event.event_digest,
            "recorded_at": event.recorded_at_ms,
        },
    )
    _link_blobs(cursors, event.event_seq, blobs)


def _link_blobs(cursors: Cursors, event_seq: int, blobs: tuple[bytes, ...]) -> None:
    """Keep each blob that the payload names for as long as the event lives."""
    for digest in dict.fromkeys(blobs):
        cursors.change(_INSERT_EVENT_BLOB, {"event_seq": event_seq, "blob_hash": digest})


def read_payload(cursors: Cursors, event_seq: int) -> bytes:
    """Return the payload of an event as it is stored."""
    rows = cursors.rows(_PAYLOAD, {"event_seq": event_seq})
    assert rows, f"event {event_seq} has no payload"
    return cast("bytes", rows[0][0])


def events(
    read: Read, after_seq: int = 0, *, of: Iterable[str] | None = None
) -> Iterator[StoredEvent]:
    """Give the log in its order, from bounded slices.

    Args:
        read: A consistent read that lasts for the whole iteration.
        after_seq: The number before the first event wanted.
        of: The resources whose events are wanted; None wants all.

    Raises:
        Corrupt: The payload of an event is missing.
    """
    statement, resources = _EVENTS_AFTER, dict[str, str]()
    if of is not None:
        listed: list[Json] = list(of)
        statement, resources = _EVENTS_OF_AFTER, {"resource_ids": canonical.encode(listed).decode()}
    while True:
        stored = read.all(
            _with_payload, statement, after_seq=after_seq, slice=EVENTS_SLICE_MAX, **resources
        )
        yield from stored
        if len(stored) < EVENTS_SLICE_MAX:
            return
        after_seq = stored[-1].event_seq


def _with_payload(*columns: Any) -> StoredEvent:
    """Shape a row of the log. A payload that no blob holds is damage, not an absent value."""
    event = StoredEvent._make(columns)
    if cast("object", event.payload) is None:
        raise Corrupt(
            f"The payload of event {event.event_seq} is missing; nothing was changed.",
            field=f"events.{event.event_seq}",
        )
    return event


def high_water_mark(read: Read) -> int:
    """Return the highest number that an event was ever given; 0 when there never was one."""
    mark = read.one(int, _HIGH_WATER_MARK)
    assert mark is not None, "an aggregate without a row"
    return mark


def check_last_event(read: Read) -> None:
    """Recompute the digest of the newest event.

    A log file of another time that lies beside the database shows itself here (the reliability
    design, pitfall 10).

    Raises:
        Corrupt: The digest differs, the payload is missing, or the number is over the mark.
    """
    event = read.one(_with_payload, _SQL["last_event"])
    if event is None:
        return
    previous = None
    if event.resource_revision > 1:
        previous = read.one(
            bytes,
            _SQL["digest_at"],
            resource_id=event.resource_id,
            resource_revision=event.resource_revision - 1,
        )
    payload_digest = hashlib.sha256(event.payload).digest()
    if (
        stored_event_digest(event, previous) != event.event_digest
        or payload_digest != event.payload_hash
        or event.event_seq > high_water_mark(read)
    ):
        raise Corrupt(f"Event {event.event_seq} is not what its digest says; nothing was changed.")
