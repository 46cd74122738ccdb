"""From the log to the rows.

Every projection again, in an empty database, through the same projectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import islice
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob, MediaType
from pi_workflows.base.errors import Corrupt, PayloadInvalid
from pi_workflows.base.sql import load
from pi_workflows.domain.events import decode, named_blobs
from pi_workflows.domain.fact import Stored, ViewRef
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.store.inactive import Scratch
from pi_workflows.store.log import events, high_water_mark
from pi_workflows.store.records import StoredEvent
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.store.transaction import Transaction

SQL: Final = load(__package__, "rebuild.sql")

# A value may be 8 MiB; this many at once stay far below what a machine has.
_SLICE_BLOBS: Final = 16
# One transaction of the scratch database; only memory and progress depend on it.
_SLICE_EVENTS: Final = 1_000


def rebuild(
    source: Snapshot,
    target: Scratch,
    projectors: Projectors,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Replay a log into an empty database (decision on replay order).

    Args:
        source: The database whose log is read.
        target: An empty database with the schema; foreign keys hold in it as they do live.
        projectors: The ones that the server uses.
        progress: Called with the number of events replayed so far.

    Returns:
        How many events were replayed.

    Raises:
        Corrupt: An event cannot be read, or does not lead to the rows that the schema demands.
    """
    _copy_content(source, target)
    replay = _Replay(projectors)
    count = 0
    stream = events(source)
    while chunk := list(islice(stream, _SLICE_EVENTS)):
        with target.transaction() as tx:
            for event in chunk:
                replay.apply(event, tx)
        count += len(chunk)
        progress(count)
    with target.transaction() as tx:
        replay.finish(tx)
    return count


def _copy_content(source: Snapshot, target: Scratch) -> None:
    """Copy every value and the counter of event numbers: both are primary."""
    stream = source.each(_StoredBlob, SQL["blobs"])
    while chunk := list(islice(stream, _SLICE_BLOBS)):
        with target.transaction() as tx:
            for blob in chunk:
                if hashlib.sha256(blob.content).digest() != blob.digest:
                    raise Corrupt("A stored value is not the one its digest names.", code="replay")
                tx.put_blob(Blob(blob.digest, blob.media_type, blob.content), blob.created_at)
    target.set_high_water_mark(high_water_mark(source))


class _StoredBlob(NamedTuple):
    digest: bytes
    media_type: MediaType
    content: bytes
    created_at: int


class _Replay:
    """Replays events one by one and holds back the view until its last event is in."""

    def __init__(self, projectors: Projectors) -> None:
        self._projectors = projectors
        self._view: ViewRef | None = None
        self._shown: list[Stored] = []

    def apply(self, event: StoredEvent, tx: Transaction) -> None:
        """Append and project one event."""
        fact = decode(event.event_type, event.payload)
        stored = Stored(
            resource_id=event.resource_id,
            revision=event.resource_revision,
            actor_type=event.actor_type,
            actor_id=event.actor_id,
            lease_generation=event.lease_generation,
            at_ms=event.recorded_at_ms,
            fact=fact,
        )
        if fact.view != self._view:
            self.finish(tx)
        try:
            self._projectors.raise_revision(stored, tx.projection)
            tx.restore(event, named(event))
            self._projectors.apply_event(stored, tx.projection)
        except AssertionError as error:
            # Live, the same event was projected: here the log itself is at fault.
            raise Corrupt(
                f"Event {event.event_seq} ({event.event_type}) cannot be replayed: {error}",
                code="replay",
            ) from error
        if fact.view is not None:
            self._view = fact.view
            self._shown.append(stored)

    def finish(self, tx: Transaction) -> None:
        """Write the viewer rows of the command that just ended."""
        if self._view is not None:
            try:
                self._projectors.apply_view(self._view, tuple(self._shown), tx.projection)
            except AssertionError as error:
                raise Corrupt(
                    f"The view of run {self._view.run_id} skips revision {self._view.revision}.",
                    code="replay",
                ) from error
        self._view = None
        self._shown = []


def named(event: StoredEvent) -> tuple[bytes, ...]:
    """Return the digests of the values that an event's payload names, in order.

    Raises:
        Corrupt: The payload is no JSON, or a name in it is no digest.
    """
    try:
        payload = canonical.decode(event.payload)
        return tuple(sorted({bytes.fromhex(name) for name in named_blobs(payload)}))
    except (PayloadInvalid, ValueError) as error:
        raise Corrupt(f"Event {event.event_seq} cannot be read.", code="eventShape") from error
