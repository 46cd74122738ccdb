"""What a recorder may send: seven kinds of event, and entries that Pi has named."""

from __future__ import annotations

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid
from pi_workflows.base.limits import (
    SESSION_BATCH_BYTES_MAX,
    SESSION_BATCH_RECORDS_MAX,
    SESSION_RECORD_BYTES_MAX,
    SESSION_TURN_TOOLS_MAX,
)
from pi_workflows.domain.session.kinds import KINDS, check_payload
from pi_workflows.domain.session.records import NewEntry, NewEvent, check_batch, stored_payload


def assistant(kind: str, **members: Json) -> tuple[str, dict[str, Json]]:
    """Return an event of an assistant."""
    return "assistant_event", {"type": kind, **members}


GOOD: list[tuple[str, dict[str, Json]]] = [
    ("turn_started", {"turnIndex": 0}),
    ("message_started", {"role": "toolResult"}),
    ("assistant_event", {"type": "start"}),
    *[
        assistant(f"{part}_{edge}", contentIndex=2)
        for part in ("text", "thinking", "toolcall")
        for edge in ("start", "end")
    ],
    (
        "assistant_event",
        {"type": "toolcall_end", "contentIndex": 0, "toolCallId": "t", "toolName": "bash"},
    ),
    *[assistant("done", reason=reason) for reason in ("stop", "length", "toolUse", "deferred")],
    ("assistant_event", {"type": "error", "reason": "aborted"}),
    ("message_finished", {"role": "user", "settled": False}),
    ("message_finished", {"role": "user", "settled": True, "entryId": "e"}),
    ("tool_execution_started", {"toolName": "bash"}),
    ("tool_execution_finished", {"toolName": "bash", "isError": True}),
    ("turn_finished", {"turnIndex": 1, "toolCallIds": []}),
    ("turn_finished", {"turnIndex": 1, "messageId": "m", "toolCallIds": ["a", "b"]}),
]
TOO_MANY: list[Json] = ["x"] * (SESSION_TURN_TOOLS_MAX + 1)
BAD: list[tuple[str, dict[str, Json], str]] = [
    ("text_delta", {"delta": "secret"}, "type"),
    ("message_update", {}, "type"),
    ("", {}, "type"),
    ("turn_started", {}, "payload.turnIndex"),
    ("turn_started", {"turnIndex": -1}, "payload.turnIndex"),
    ("turn_started", {"turnIndex": True}, "payload.turnIndex"),
    ("turn_started", {"turnIndex": 1.5}, "payload.turnIndex"),
    ("turn_started", {"turnIndex": 0, "at": 1}, "payload.at"),
    ("message_started", {"role": ""}, "payload.role"),
    ("message_started", {"role": "x" * 129}, "payload.role"),
    ("message_started", {"role": "user", "content": "secret"}, "payload.content"),
    ("assistant_event", {}, "payload.type"),
    ("assistant_event", {"type": "text_delta", "delta": "x"}, "payload.type"),
    ("assistant_event", {"type": ["start"]}, "payload.type"),
    ("assistant_event", {"type": "start", "contentIndex": 0}, "payload.contentIndex"),
    ("assistant_event", {"type": "text_start"}, "payload.contentIndex"),
    ("assistant_event", {"type": "text_end", "contentIndex": 0, "content": "x"}, "payload.content"),
    ("assistant_event", {"type": "toolcall_start", "contentIndex": 0, "toolCallId": "t"},
     "payload.toolCallId"),
    ("assistant_event", {"type": "toolcall_end", "contentIndex": 0, "arguments": {}},
     "payload.arguments"),
    ("assistant_event", {"type": "done"}, "payload.reason"),
    ("assistant_event", {"type": "done", "reason": "aborted"}, "payload.reason"),
    ("assistant_event", {"type": "error", "reason": "stop"}, "payload.reason"),
    ("message_finished", {"role": "user"}, "payload.settled"),
    ("message_finished", {"role": "user", "settled": "yes"}, "payload.settled"),
    ("message_finished", {"role": "user", "settled": True, "entryId": None}, "payload.entryId"),
    ("tool_execution_started", {"toolName": "bash", "args": {}}, "payload.args"),
    ("tool_execution_finished", {"toolName": "bash", "isError": 0}, "payload.isError"),
    ("tool_execution_finished", {"toolName": "bash", "isError": False, "result": "x"},
     "payload.result"),
    ("turn_finished", {"turnIndex": 0}, "payload.toolCallIds"),
    ("turn_finished", {"turnIndex": 0, "toolCallIds": [""]}, "payload.toolCallIds"),
    ("turn_finished", {"turnIndex": 0, "toolCallIds": ["x" * 257]}, "payload.toolCallIds"),
    ("turn_finished", {"turnIndex": 0, "toolCallIds": TOO_MANY},
     "payload.toolCallIds"),
    ("turn_finished", {"turnIndex": 0, "toolCallIds": [], "x" * 300: 1}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "payload"), GOOD)
def test_every_kind_is_taken(kind: str, payload: dict[str, Json]) -> None:
    """Each kind has its members, and the stored payload gives them back with the time."""
    record = NewEvent.of(1, kind, 17, payload, "events[0]")
    assert stored_payload(record.content.content, 99) == (17, payload)


def test_the_table_is_whole() -> None:
    """Every kind has an example here."""
    assert {kind for kind, _ in GOOD} == set(KINDS)


@pytest.mark.parametrize(("kind", "payload", "place"), BAD)
def test_anything_else_is_refused(kind: str, payload: dict[str, Json], place: str) -> None:
    """A delta, an unknown kind, and a member that is missing, wrong or too much, by its place."""
    with pytest.raises(PayloadInvalid) as caught:
        check_payload(kind, payload, "events[3]")
    error = caught.value
    assert (error.field or "").startswith(f"events[3].{place}")
    code = "sessionEventType" if place == "type" else "sessionEventPayload"
    assert error.reason_code == code
    assert "secret" not in error.message
    assert len(error.message) < 600


@pytest.mark.parametrize("entry", [{}, {"id": 7}, {"id": ""}, {"id": "x" * 257}])
def test_an_entry_has_a_name(entry: dict[str, Json]) -> None:
    """An entry that Pi has not named cannot be settled by anything."""
    with pytest.raises(PayloadInvalid) as caught:
        NewEntry.of(1, entry, "entries[2]")
    assert caught.value.field == "entries[2].entry.id"


def test_an_entry_that_no_value_can_hold_is_refused() -> None:
    """What is nested too deeply is refused with its place, as everywhere."""
    deep: Json = "x"
    for _ in range(120):
        deep = [deep]
    with pytest.raises(PayloadInvalid) as caught:
        NewEntry.of(1, {"id": "e", "deep": deep}, "entries[2]")
    assert (caught.value.field or "").startswith("entries[2].entry")


def sized(seq: int, size: int) -> NewEntry:
    """Return an entry of so many bytes."""
    empty = len(canonical.encode({"id": "e", "text": ""}))
    return NewEntry.of(seq, {"id": "e", "text": "x" * (size - empty)}, "entries")


def test_a_batch_is_bounded() -> None:
    """So many records, and so many bytes; one alone may have more, as far as a record goes."""
    small = [sized(seq, 30) for seq in range(SESSION_BATCH_RECORDS_MAX + 1)]
    check_batch(small[1:], "entries")
    half = SESSION_BATCH_BYTES_MAX // 2
    check_batch([sized(1, half), sized(2, half)], "entries")
    check_batch([sized(1, SESSION_RECORD_BYTES_MAX)], "entries")
    for records, code in (
        (small, "batchTooLarge"),
        ([sized(1, half), sized(2, half + 1)], "batchTooLarge"),
        ([sized(1, SESSION_RECORD_BYTES_MAX + 1)], "recordTooLarge"),
    ):
        with pytest.raises(LimitExceeded) as caught:
            check_batch(records, "entries")
        assert (caught.value.reason_code, caught.value.field) == (code, "entries")


def test_a_payload_of_an_unknown_kind_is_still_shown() -> None:
    """What a later version stored has the time of its flush, unless it says its own."""
    assert stored_payload(Blob.json([1]).content, 99) == (99, {"value": [1]})
    assert stored_payload(Blob.json({"x": 1}).content, 99) == (99, {"x": 1})
    assert stored_payload(Blob.json({"at": "noon"}).content, 99) == (99, {})
