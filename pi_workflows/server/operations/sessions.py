"""What the recorder of a Pi session sends for a run."""

from __future__ import annotations

from dataclasses import replace

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.domain.session.capture import (
    BindSession,
    CaptureCommand,
    EndCapture,
    RecordEntries,
    RecordEvents,
    segment_state,
)
from pi_workflows.domain.session.records import NewEntry, NewEvent, check_batch
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.sessions import (
    SessionBinding,
    SessionCapture,
    SessionEntry,
    SessionEvent,
    SessionRecord,
    SessionStanding,
)
from pi_workflows.server.operations.call import Call, replied, shown
from pi_workflows.server.operations.own_run import session_of
from pi_workflows.server.services import Services
from pi_workflows.views.facts import run_facts


async def record(services: Services, call: Call) -> Reply:
    """Take one step of a recorder, for a run of the session in whose name it speaks.

    Entries and events leave no receipt: they are found again by their numbers.

    Raises:
        AuthorityDenied: `notCoordinator`: the binding is of another session.
        PayloadInvalid: A record is none, with its field.
        LimitExceeded: A batch or a record is too large.
        NotFound: There is no such run, for `status`.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(SessionRecord)
    command: CaptureCommand
    is_remembered = True
    if payload.binding is not None:
        command = _bind(call, payload, payload.binding)
    elif payload.capture is not None:
        command = _end(call, payload, payload.capture)
    elif payload.entries is not None or payload.events is not None:
        is_remembered = False
        command = _records(call, payload)
    else:
        return shown(_standing(services, call.run_id, payload.attempt_id))
    order = call.order(command, size_bytes=_size(command))
    if not is_remembered:
        order = replace(order, identity=None)
    return replied(await services.writer.submit(order))


def _bind(call: Call, payload: SessionRecord, binding: SessionBinding) -> BindSession:
    """Return the begin of a capture."""
    session_id = session_of(call)
    if binding.pi_session_id != session_id:
        raise AuthorityDenied(
            "This connection does not coordinate that session.",
            code="notCoordinator",
            field="binding.piSessionId",
        )
    content = Blob.json(binding.document())
    return BindSession(call.run_id, payload.attempt_id, session_id, content)


def _records(call: Call, payload: SessionRecord) -> RecordEntries | RecordEvents:
    """Return a batch of records, read and encoded."""
    key = payload.attempt_id
    if payload.entries is not None:
        entries = tuple(_entry(each, index) for index, each in enumerate(payload.entries))
        check_batch(entries, "entries")
        return RecordEntries(call.run_id, key, entries)
    events = tuple(_event(each, index) for index, each in enumerate(payload.events or ()))
    check_batch(events, "events")
    return RecordEvents(call.run_id, key, events)


def _entry(record: SessionEntry, index: int) -> NewEntry:
    """Return a settled entry."""
    return NewEntry.of(record.seq, record.entry, f"entries[{index}]")


def _event(record: SessionEvent, index: int) -> NewEvent:
    """Return a session event."""
    return NewEvent.of(
        record.seq,
        record.type,
        record.at,
        record.payload,
        f"events[{index}]",
        node_id=record.node_id,
        attempt_id=record.attempt_id,
        turn_id=record.turn_id,
        message_id=record.message_id,
        tool_call_id=record.tool_call_id,
    )


def _end(call: Call, payload: SessionRecord, capture: SessionCapture) -> EndCapture:
    """Return the end of a capture."""
    failure = None if capture.failure is None else Blob.json(capture.failure.document())
    return EndCapture(
        call.run_id,
        payload.attempt_id,
        capture.status,
        capture.entry_count,
        capture.event_count,
        capture.last_event_seq,
        failure,
    )


def _size(command: CaptureCommand) -> int:
    """Return how many bytes of values a command carries."""
    match command:
        case RecordEntries(entries=records) | RecordEvents(events=records):
            return sum(len(record.content.content) for record in records)
        case _:
            return 0


def _standing(services: Services, run_id: str, key: str | None) -> SessionStanding:
    """Return how far a capture has come."""
    with services.store.snapshot() as read:
        run_facts(read, run_id)
        segment = segment_state(read, run_id, key)
    return SessionStanding(
        run_id=run_id,
        attempt_id=key,
        bound=segment is not None,
        event_count=segment.event_count if segment else 0,
        entry_count=segment.entry_count if segment else 0,
        last_event_seq=segment.event_count if segment else 0,
    )
