"""From the log to the rows.

Every projection again, in an empty database, through the same projectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pi_workflows.base.blob import Blob, MediaType
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.sql import load
from pi_workflows.domain.events import decode, named_blobs
from pi_workflows.domain.fact import CommandRef, Event, Stored, ViewRef
from pi_workflows.domain.session.journal import EntryRow
from pi_workflows.kernel.flush import Stamped, append_flush
from pi_workflows.kernel.journals import Journals
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.store.log import events, high_water_mark
from pi_workflows.store.records import StoredEvent
from pi_workflows.store.scratch import Scratch
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.store.transaction import Transaction

SQL: Final = load(__package__, "rebuild.sql")

# One transaction of the scratch database; only memory and progress depend on it.
_SLICE_EVENTS: Final = 1_000
# Digests of values that were copied before, such as a definition's, so that it is not read for each
# run: half a megabyte of them. One that was forgotten is copied once more, which changes nothing.
_COPIED_MAX: Final = 4_096


def rebuild(
    source: Snapshot,
    target: Scratch,
    projectors: Projectors,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Replay a whole log into an empty database (decision on replay order).

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
    replay = Replay(source, target, projectors)
    replay.advance(progress=progress)
    return replay.event_count


class Replay:
    """A log on its way into an empty database, as far as it was asked to go.

    Attributes:
        event_count: How many events were replayed.
        event_seq: The number of the last of them; 0 before the first.
        at_ms: When it was recorded.
    """

    def __init__(
        self,
        source: Snapshot,
        target: Scratch,
        projectors: Projectors,
        *,
        of: Iterable[str] | None = None,
    ) -> None:
        """Stand before the first event.

        Args:
            source: The database whose log is read, for as long as the replay goes on.
            target: As `rebuild`.
            projectors: As `rebuild`.
            of: The resources whose events are replayed, all of their root tree's; None replays
                every event.
        """
        self.event_count = 0
        self.event_seq = 0
        self.at_ms = 0
        self._source = source
        self._target = target
        self._projectors = projectors
        wanted = None if of is None else frozenset(of)
        self._journals = Journals(source, of=wanted)
        self._events = events(source, of=wanted)
        self._next = next(self._events, None)
        self._command: CommandRef | None = None
        self._view: ViewRef | None = None
        self._shown: list[Stored] = []
        self._copied: set[bytes] = set()
        target.set_high_water_mark(high_water_mark(source))

    def advance(
        self, to_seq: int | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        """Go on to an event, and to the last one of its command.

        Args:
            to_seq: The event's number; None goes to the end of the log. One that was replayed
                before leaves everything where it stands.
            progress: Called with the number of events replayed so far.

        Raises:
            Corrupt: As `rebuild`.
        """
        is_over = False
        while not is_over:
            with self._target.transaction() as tx:
                for _ in range(_SLICE_EVENTS):
                    fact = self._due(to_seq)
                    if fact is None or self._next is None:
                        is_over = True
                        self._show(tx)
                        if to_seq is None:
                            self._flush_rest(tx)
                        break
                    self._apply(self._next, fact, tx)
                    self._next = next(self._events, None)
            progress(self.event_count)

    def _due(self, to_seq: int | None) -> Event | None:
        """Return the next event if it is to be replayed."""
        event = self._next
        if event is None:
            return None
        fact = decode(event.event_type, event.payload)
        if to_seq is None or event.event_seq <= to_seq:
            return fact
        is_same = self._command is not None and fact.command == self._command
        return fact if is_same else None

    def _apply(self, event: StoredEvent, fact: Event, tx: Transaction) -> None:
        """Append and project one event."""
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
            self._show(tx)
            if fact.view is not None:
                for flushed in self._journals.before(fact.view.run_id, fact.view.revision):
                    self._flush(flushed, tx)
        names = named(event)
        self._copy_content(event, names, tx)
        try:
            self._projectors.raise_revision(stored, tx.projection)
            tx.restore(event, names)
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
        self._command = fact.command
        self.event_count += 1
        self.event_seq, self.at_ms = event.event_seq, event.recorded_at_ms

    def _copy_content(self, event: StoredEvent, names: tuple[bytes, ...], tx: Transaction) -> None:
        """Store the event's payload and every value that it names: content is primary."""
        payload = Blob(event.payload_hash, "application/json", event.payload)
        if hashlib.sha256(event.payload).digest() != event.payload_hash:
            raise Corrupt(f"The payload of event {event.event_seq} is another one.", code="replay")
        tx.restore_blob(payload, event.recorded_at_ms)
        for digest in names:
            if not self._copy(digest, tx):
                raise Corrupt(
                    f"A value that event {event.event_seq} names is missing or is another one.",
                    code="replay",
                )

    def _copy(self, digest: bytes, tx: Transaction) -> bool:
        """Store a value of the source; return whether the source has it as it is called."""
        if digest in self._copied:
            return True
        blob = self._source.one(_StoredBlob, SQL["blob"], digest=digest)
        if blob is None or hashlib.sha256(blob.content).digest() != digest:
            return False
        tx.restore_blob(Blob(digest, blob.media_type, blob.content), blob.created_at)
        if len(self._copied) == _COPIED_MAX:
            self._copied.clear()
        self._copied.add(digest)
        return True

    def _flush_rest(self, tx: Transaction) -> None:
        """Append what was captured after the last event of each run that was replayed."""
        for stamped in self._journals.rest():
            self._flush(stamped, tx)

    def _flush(self, stamped: Stamped, tx: Transaction) -> None:
        """Append a flush as it is stored, and show it."""
        for row in stamped.flush.rows():
            digest = row.entry_hash if isinstance(row, EntryRow) else row.payload_hash
            if not self._copy(digest, tx):
                raise _unfit(stamped, "a value is missing or is another one")
        try:
            append_flush(tx, stamped, self._projectors)
            self._projectors.apply_view(
                stamped.view, (), stamped.flush, stamped.at_ms, tx.projection
            )
        except AssertionError as error:
            raise _unfit(stamped, str(error)) from error

    def _show(self, tx: Transaction) -> None:
        """Write the viewer rows of the command that just ended."""
        if self._view is not None:
            try:
                at_ms = self._shown[-1].at_ms
                self._projectors.apply_view(
                    self._view, tuple(self._shown), None, at_ms, tx.projection
                )
            except AssertionError as error:
                raise Corrupt(
                    f"The view of run {self._view.run_id} skips revision {self._view.revision}.",
                    code="replay",
                    field=f"runs.{self._view.run_id}",
                ) from error
        self._view = None
        self._shown = []


class _StoredBlob(NamedTuple):
    media_type: MediaType
    content: bytes
    created_at: int


def _unfit(stamped: Stamped, reason: str) -> Corrupt:
    """Return the error of a flush that does not lead to the rows that the schema demands."""
    run_id, revision = stamped.view.run_id, stamped.view.revision
    return Corrupt(
        f"What run {run_id} captured under revision {revision} cannot be replayed: {reason}",
        code="replay",
        field=f"runs.{run_id}",
    )


def named(event: StoredEvent) -> tuple[bytes, ...]:
    """Return the digests of the values that an event's payload names, in order.

    Raises:
        Corrupt: A name in it is no digest.
    """
    try:
        return named_blobs(event.payload)
    except ValueError as error:
        raise Corrupt(f"Event {event.event_seq} cannot be read.", code="eventShape") from error
