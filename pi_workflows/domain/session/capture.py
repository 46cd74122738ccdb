"""Capturing a session: a segment is opened, filled batch by batch, and ended for good.

Batches are idempotent by segment and number, so that a recorder whose reply was lost sends them
again. Whatever becomes of a capture, its run goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    IdempotencyConflict,
    NotFound,
    Outcome,
    PayloadInvalid,
    TransitionDenied,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.fact import Command, Context, Decided, Draft, Event
from pi_workflows.domain.run.state import run_state
from pi_workflows.domain.session.events import SegmentCompleted, SegmentFailed, SegmentOpened
from pi_workflows.domain.session.journal import EntryRow, EventRow, Flush
from pi_workflows.domain.session.links import linked
from pi_workflows.domain.session.records import NewEntry, NewEvent
from pi_workflows.domain.session_rows import SegmentEnd, SegmentRow, SegmentStatus

SQL: Final = load(__package__, "reads.sql")

Action: TypeAlias = Literal["bind", "entries", "events", "capture"]
_NOTHING: Final = bytes(32).hex()


@dataclass(frozen=True, slots=True)
class CaptureCommand(Command):
    """What every command about a capture names.

    Attributes:
        capture_key: Which of the run's captures: mostly an attempt's; None is the run's own.
    """

    capture_key: str | None

    @property
    def segment_id(self) -> str:
        """The segment."""
        return ids.segment_id(self.run_id, self.capture_key)

    def receipt(self, action: Action, **members: Json) -> dict[str, Json]:
        """Return what the recorder is told."""
        receipt: dict[str, Json] = {"runId": self.run_id, "action": action, **members}
        if self.capture_key is not None:
            receipt["attemptId"] = self.capture_key
        return receipt

    def draft(self, event: Event) -> Draft:
        """Return an event of the segment's own resource."""
        return Draft("session", self.segment_id, event, self.run_id)


@dataclass(frozen=True, slots=True)
class BindSession(CaptureCommand):
    """Begin to capture a session.

    Attributes:
        session_id: The Pi session.
        binding: What the recorder says of it.
    """

    session_id: str
    binding: Blob


@dataclass(frozen=True, slots=True)
class RecordEntries(CaptureCommand):
    """Append settled entries. Those that are there already are skipped."""

    entries: tuple[NewEntry, ...]


@dataclass(frozen=True, slots=True)
class RecordEvents(CaptureCommand):
    """Append session events. Those that are there already are skipped."""

    events: tuple[NewEvent, ...]


@dataclass(frozen=True, slots=True)
class EndCapture(CaptureCommand):
    """End a capture.

    Attributes:
        status: How it ends.
        entry_count: Entries that the recorder has sent.
        event_count: Events that it has sent.
        last_event_seq: The number of the last of them.
        failure: Why it failed; exactly when it did.
    """

    status: Literal["complete", "failed"]
    entry_count: int
    event_count: int
    last_event_seq: int
    failure: Blob | None = None


class SegmentState(NamedTuple):
    """A capture as the decisions about it need it."""

    attempt_id: str | None
    binding_hash: bytes | None
    status: SegmentStatus
    entry_count: int
    event_count: int
    failure_hash: bytes | None


class _Totals(NamedTuple):
    entries: int
    events: int


class _StoredEntry(NamedTuple):
    seq: int
    entry_id: str
    entry_hash: bytes


class _StoredEvent(NamedTuple):
    seq: int
    event_type: str
    node_id: str | None
    attempt_id: str | None
    turn_id: str | None
    message_id: str | None
    tool_call_id: str | None
    payload_hash: bytes


def segment_state(read: Read, run_id: str, capture_key: str | None) -> SegmentState | None:
    """Return a capture of a run, None when there is none."""
    segment_id = ids.segment_id(run_id, capture_key)
    return read.one(SegmentState, SQL["segment"], segment_id=segment_id)


def bind_session(command: BindSession, context: Context, read: Read) -> Decided:
    """Decide to begin a capture.

    Raises:
        NotFound: There is no such run.
        PayloadInvalid: `attemptForeign`, the key is an attempt of another run.
        IdempotencyConflict: `captureBound`, the capture is of another session or binding.
        TransitionDenied: `captureEnded`.
    """
    run = run_state(read, command.run_id)
    known = segment_state(read, run.run_id, command.capture_key)
    receipt = command.receipt("bind")
    if known is not None:
        _require_recording(known)
        if known.binding_hash != command.binding.digest:
            raise IdempotencyConflict(
                "This capture was begun with another binding.",
                code="captureBound",
                field="binding",
            )
        return Decided(receipt=receipt, outcome=Outcome.ADOPTED)
    row = SegmentRow(
        segment_id=command.segment_id,
        run_id=run.run_id,
        attempt_id=_attempt(read, run.run_id, command.capture_key),
        capture_key=command.capture_key,
        session_id=command.session_id,
        resource_id=ids.resource_id("session", command.segment_id),
        binding_hash=command.binding.hex,
        status="recording",
        entry_count=0,
        event_count=0,
        entry_digest=_NOTHING,
        event_digest=_NOTHING,
        failure_hash=None,
        created_at=context.at_ms,
        finished_at=None,
    )
    draft = command.draft(SegmentOpened(segment=row))
    return Decided(drafts=(draft,), blobs=(command.binding,), receipt=receipt)


def record_entries(command: RecordEntries, context: Context, read: Read) -> Decided:
    """Decide to append entries.

    Raises:
        NotFound: `captureMissing`.
        TransitionDenied: `captureGap`, or `captureEnded`.
        IdempotencyConflict: `captureDiffers`, another entry has that number; `entryReused`.
    """
    segment = _segment(read, command)
    given = [_StoredEntry(e.seq, e.entry_id, e.content.digest) for e in command.entries]
    known_count = _known(command.entries, segment.entry_count)
    stored = read.all(_StoredEntry, SQL["stored_entries"], **_range(command, given[:known_count]))
    _require_same(given[:known_count], stored)
    fresh = command.entries[known_count:]
    last = segment.entry_count + len(fresh)
    receipt = command.receipt("entries", entrySequence=last)
    if not fresh:
        return Decided(receipt=receipt, outcome=Outcome.ADOPTED)
    _require_recording(segment)
    _require_new_entries(read, command.segment_id, [entry.entry_id for entry in fresh])
    total = _totals(read, command.run_id).entries
    rows = tuple(
        EntryRow(
            segment_id=command.segment_id,
            entry_seq=entry.seq,
            run_seq=run_seq,
            entry_id=entry.entry_id,
            entry_hash=entry.content.digest,
        )
        for run_seq, entry in enumerate(fresh, total + 1)
    )
    return Decided(
        blobs=tuple(entry.content for entry in fresh),
        receipt=receipt,
        flush=Flush(command.run_id, entries=rows),
    )


def record_events(command: RecordEvents, context: Context, read: Read) -> Decided:
    """Decide to append session events.

    Raises:
        NotFound: `captureMissing`.
        PayloadInvalid: `attemptForeign`, an event names an attempt that is none of the run.
        TransitionDenied: `captureGap`, or `captureEnded`.
        IdempotencyConflict: `captureDiffers`, another event has that number.
    """
    segment = _segment(read, command)
    given = [_stored(event) for event in command.events]
    known_count = _known(command.events, segment.event_count)
    stored = read.all(_StoredEvent, SQL["stored_events"], **_range(command, given[:known_count]))
    _require_same(given[:known_count], stored)
    fresh = command.events[known_count:]
    receipt = command.receipt("events")
    if not fresh:
        return Decided(receipt=receipt, outcome=Outcome.ADOPTED)
    _require_recording(segment)
    _require_own_attempts(read, command.run_id, fresh)
    total = _totals(read, command.run_id).events
    rows = tuple(
        _event_row(command.segment_id, run_seq, event)
        for run_seq, event in enumerate(fresh, total + 1)
    )
    return Decided(
        blobs=tuple(event.content for event in fresh),
        receipt=receipt,
        flush=Flush(command.run_id, events=rows),
    )


def end_capture(command: EndCapture, context: Context, read: Read) -> Decided:
    """Decide to end a capture: one that is called complete has to be.

    Raises:
        NotFound: `captureMissing`.
        TransitionDenied: `captureEnded`, it has ended otherwise; `captureCount`, the recorder has
            sent more or less than is stored; `captureReferences`, an event names an entry that was
            not sent.
    """
    segment = _segment(read, command)
    receipt = command.receipt("capture")
    failure = command.failure
    if segment.status != "recording":
        is_same = (segment.status, segment.failure_hash) == (
            command.status,
            failure.digest if failure is not None else None,
        )
        if not is_same:
            _require_recording(segment)
        return Decided(receipt=receipt, outcome=Outcome.ADOPTED)
    end = SegmentEnd(
        segment_id=command.segment_id,
        status=command.status,
        entry_count=segment.entry_count,
        event_count=segment.event_count,
        failure_hash=failure.hex if failure is not None else None,
        finished_at=context.at_ms,
    )
    if command.status == "complete":
        _require_whole(read, command, segment)
        event: Event = SegmentCompleted(run_id=command.run_id, segment=end)
    else:
        event = SegmentFailed(run_id=command.run_id, segment=end)
    blobs = (failure,) if failure is not None else ()
    drafts = [command.draft(event)]
    if segment.attempt_id is not None:
        drafts += linked(read, command.run_id, command.segment_id, segment.attempt_id)
    return Decided(drafts=tuple(drafts), blobs=blobs, receipt=receipt)


def _segment(read: Read, command: CaptureCommand) -> SegmentState:
    """Return the capture of a command. Raises NotFound."""
    segment = segment_state(read, command.run_id, command.capture_key)
    if segment is None:
        raise NotFound(
            f"Run {command.run_id} has no such capture.",
            code="captureMissing",
            field="attemptId",
            hint="Bind the session first.",
        )
    return segment


def _attempt(read: Read, run_id: str, key: str | None) -> str | None:
    """Return the attempt that a key names, None when it names something else."""
    if key is None:
        return None
    owner = read.one(str, SQL["attempt_run"], attempt_id=key)
    if owner not in (None, run_id):
        raise _foreign("attemptId")
    return key if owner is not None else None


def _known(records: Sequence[NewEntry | NewEvent], stored_count: int) -> int:
    """Return how many of the records are stored already. Raises TransitionDenied at a gap."""
    first = records[0].seq
    expected = range(first, first + len(records))
    is_whole = [record.seq for record in records] == list(expected)
    if not is_whole or first > stored_count + 1:
        raise TransitionDenied(
            f"The next record is number {stored_count + 1}, and each follows the one before it.",
            code="captureGap",
            hint="Ask for the status and go on from there.",
        )
    return min(len(records), stored_count - first + 1)


def _range(
    command: CaptureCommand, known: Sequence[_StoredEntry | _StoredEvent]
) -> dict[str, str | int]:
    """Return the range of records that are compared; an empty one when there are none."""
    first, last = (known[0].seq, known[-1].seq) if known else (1, 0)
    return {"segment_id": command.segment_id, "first": first, "last": last}


def _require_same(
    given: Sequence[_StoredEntry | _StoredEvent], stored: Sequence[_StoredEntry | _StoredEvent]
) -> None:
    """Refuse records of which another one is stored under the same number."""
    if [*given] != [*stored]:
        raise IdempotencyConflict(
            "Something else is stored under the number of a record.", code="captureDiffers"
        )


def _require_recording(segment: SegmentState) -> None:
    """Refuse to change a capture that has ended."""
    if segment.status != "recording":
        raise TransitionDenied(f"This capture is {segment.status}.", code="captureEnded")


def _require_new_entries(read: Read, segment_id: str, entry_ids: Sequence[str]) -> None:
    """Refuse an entry that the capture has already, under another number."""
    known = read.all(str, SQL["known_entries"], segment_id=segment_id, entry_ids=_listed(entry_ids))
    if known or len(set(entry_ids)) < len(entry_ids):
        raise IdempotencyConflict("An entry has two numbers.", code="entryReused", field="entries")


def _require_own_attempts(read: Read, run_id: str, events: Iterable[NewEvent]) -> None:
    """Refuse an event of an attempt that is none of the run's."""
    named = sorted({event.attempt_id for event in events if event.attempt_id is not None})
    strange = SQL["strange_attempts"]
    if named and read.all(str, strange, run_id=run_id, attempt_ids=_listed(named)):
        raise _foreign("events")


def _require_whole(read: Read, command: EndCapture, segment: SegmentState) -> None:
    """Refuse to call a capture complete that lacks something."""
    sent = (command.entry_count, command.event_count, command.last_event_seq)
    if sent != (segment.entry_count, segment.event_count, segment.event_count):
        raise TransitionDenied(
            f"{segment.entry_count} entries and {segment.event_count} events are stored.",
            code="captureCount",
            field="capture",
            hint="Send what is missing, or end the capture as failed.",
        )
    if read.one(str, SQL["lost_entry"], segment_id=command.segment_id) is not None:
        raise TransitionDenied(
            "A message became an entry that was not sent.",
            code="captureReferences",
            field="capture",
            hint="Send the entry, or end the capture as failed.",
        )


def _stored(event: NewEvent) -> _StoredEvent:
    """Return what is stored of an event beside its places."""
    return _StoredEvent(
        seq=event.seq,
        event_type=event.event_type,
        node_id=event.node_id,
        attempt_id=event.attempt_id,
        turn_id=event.turn_id,
        message_id=event.message_id,
        tool_call_id=event.tool_call_id,
        payload_hash=event.content.digest,
    )


def _event_row(segment_id: str, run_seq: int, event: NewEvent) -> EventRow:
    """Return the row of an event."""
    return EventRow(
        segment_id=segment_id,
        event_seq=event.seq,
        run_seq=run_seq,
        event_type=event.event_type,
        node_id=event.node_id,
        attempt_id=event.attempt_id,
        turn_id=event.turn_id,
        message_id=event.message_id,
        tool_call_id=event.tool_call_id,
        payload_hash=event.content.digest,
    )


def _totals(read: Read, run_id: str) -> _Totals:
    """Return how much was captured of a run so far."""
    totals = read.one(_Totals, SQL["totals"], run_id=run_id)
    assert totals is not None, "a row without a table"
    return totals


def _foreign(field: str) -> PayloadInvalid:
    """Return the refusal of an attempt that is none of the run's."""
    return PayloadInvalid(
        f"{field}: an attempt is none of this run's", code="attemptForeign", field=field
    )


def _listed(values: Iterable[str]) -> str:
    """Return texts as a JSON array."""
    listed: list[Json] = [*values]
    return canonical.encode(listed).decode()
