"""What a recorder sends: entries and events of a session that was never held."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.domain.session.capture import (
    BindSession,
    EndCapture,
    RecordEntries,
    RecordEvents,
)
from pi_workflows.domain.session.checkpoints import session_event
from pi_workflows.domain.session.records import NewEntry, NewEvent
from pi_workflows.domain.session.reducer import SessionEvent
from tests.kernel.harness import START_MS

SESSION = "session-1"


def bind(run_id: str = "run-1", key: str | None = None, *, session: str = SESSION) -> BindSession:
    """Return the command that begins a capture."""
    binding = Blob.json({"piSessionId": session, "cwd": "/project"})
    return BindSession(run_id, key, session, binding)


def entry(seq: int, text: str = "hello", *, entry_id: str | None = None) -> NewEntry:
    """Return an entry."""
    name = entry_id or f"entry-{seq}"
    return NewEntry.of(seq, {"type": "message", "id": name, "text": text}, f"entries[{seq}]")


def entries(
    numbers: Sequence[int], run_id: str = "run-1", key: str | None = None, text: str = "hello"
) -> RecordEntries:
    """Return the command that records entries."""
    return RecordEntries(run_id, key, tuple(entry(number, text) for number in numbers))


def event(
    seq: int,
    event_type: str = "turn_started",
    payload: dict[str, Json] | None = None,
    *,
    attempt: str | None = None,
    message: str | None = None,
    tool: str | None = None,
) -> NewEvent:
    """Return a session event."""
    members: dict[str, Json] = {"turnIndex": seq} if payload is None else payload
    return NewEvent.of(
        seq,
        event_type,
        START_MS + seq,
        members,
        f"events[{seq}]",
        node_id="one" if attempt else None,
        attempt_id=attempt,
        turn_id="turn-1",
        message_id=message,
        tool_call_id=tool,
    )


def events(numbers: Sequence[int], run_id: str = "run-1", key: str | None = None) -> RecordEvents:
    """Return the command that records events of turns."""
    return RecordEvents(run_id, key, tuple(event(number) for number in numbers))


def complete(
    entry_count: int, event_count: int, run_id: str = "run-1", key: str | None = None
) -> EndCapture:
    """Return the command that ends a capture well."""
    return EndCapture(run_id, key, "complete", entry_count, event_count, event_count)


def failed(run_id: str = "run-1", key: str | None = None) -> EndCapture:
    """Return the command that ends a capture badly."""
    failure = Blob.json({"failedAt": START_MS, "code": "overflow", "message": "too much"})
    return EndCapture(run_id, key, "failed", 0, 0, 0, failure)


def conversation(chance: random.Random, length: int) -> Iterator[NewEvent]:
    """Yield the events of a session, from 1: some of them are not as they should be."""
    names = [f"m{number}" for number in range(6)]
    tools = [f"t{number}" for number in range(4)]
    for seq in range(1, length + 1):
        kind, payload = chance.choice(_SHAPES)
        members = dict(payload)
        if "contentIndex" in members:
            members["contentIndex"] = chance.randrange(3)
        yield event(seq, kind, members, message=chance.choice(names), tool=chance.choice(tools))


_SHAPES: Sequence[tuple[str, dict[str, Json]]] = (
    ("turn_started", {"turnIndex": 0}),
    ("message_started", {"role": "assistant"}),
    ("message_started", {"role": "user"}),
    ("assistant_event", {"type": "start"}),
    ("assistant_event", {"type": "text_start", "contentIndex": 0}),
    ("assistant_event", {"type": "text_end", "contentIndex": 0}),
    ("assistant_event", {"type": "thinking_start", "contentIndex": 0}),
    ("assistant_event", {"type": "toolcall_start", "contentIndex": 0}),
    ("assistant_event", {"type": "toolcall_end", "contentIndex": 0, "toolCallId": "t1"}),
    ("assistant_event", {"type": "done", "reason": "stop"}),
    ("assistant_event", {"type": "error", "reason": "aborted"}),
    ("message_finished", {"role": "assistant", "settled": True, "entryId": "entry-1"}),
    ("message_finished", {"role": "assistant", "settled": False}),
    ("message_finished", {"role": "assistant", "settled": True}),
    ("tool_execution_started", {"toolName": "bash"}),
    ("tool_execution_finished", {"toolName": "bash", "isError": False}),
    ("tool_execution_finished", {"toolName": "bash", "isError": True}),
    ("turn_finished", {"turnIndex": 0, "toolCallIds": ["t1"]}),
)


def folded(record: NewEvent, seq: int) -> SessionEvent:
    """Return a record as a fold takes it, under its run-wide number."""
    return session_event(
        seq, record.event_type, record.message_id, record.tool_call_id, record.content.content
    )
