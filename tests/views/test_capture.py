"""What was captured of a run's sessions, as a run's view and its pages show it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import INLINE_BYTES_MAX, PAGE_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.base.vocabulary import WindowKind
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.domain.session.capture import RecordEntries, RecordEvents
from pi_workflows.domain.session.records import NewEntry, NewEvent
from pi_workflows.domain.session.reducer import ReplayState, fold
from pi_workflows.store.statistics import Totals, measure
from pi_workflows.views.content import content_chunk
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_view import run_view
from tests.kernel.harness import START_MS, Harness
from tests.kernel.recording import (
    SESSION,
    bind,
    complete,
    conversation,
    entries,
    event,
    events,
    failed,
    folded,
)
from tests.views.reading import Document, at, items, page, view

EMPTY: Document = {"start": 0, "total": 0, "items": []}
SOUND: Document = {"status": "valid", "diagnostics": []}


@pytest.fixture
def bench(bench: Harness) -> Harness:
    """Begin with a run of a session."""
    bench.do(bench.start(session=SESSION))
    return bench


def session(bench: Harness) -> Document:
    """Return the session of the run's view."""
    found = at(view(bench), "session")
    assert isinstance(found, dict)
    return found


def recorded(bench: Harness, records: Sequence[NewEvent], batch: int = 256) -> None:
    """Record events in batches."""
    for start in range(0, len(records), batch):
        bench.do(RecordEvents("run-1", None, tuple(records[start : start + batch])))


def numbers(found: Document) -> list[Json]:
    """Return the numbers of a page's items."""
    return [item["seq"] for item in items(found, "items")]


def test_a_run_without_captures_says_so(bench: Harness) -> None:
    """The member is there, with nothing in it."""
    assert session(bench) == {
        "binding": None,
        "entryPage": EMPTY,
        "eventPage": EMPTY,
        "capture": None,
        "integrity": SOUND,
        "replayCheckpoint": None,
    }
    assert page(bench, "session_entries") == {
        **EMPTY,
        "schema": "pi-workflows.run-page.v1",
        "runId": "run-1",
        "revision": 1,
        "kind": "session_entries",
    }
    assert page(bench, "session_events")["replayCheckpoint"] is None


def test_a_capture_is_shown(bench: Harness) -> None:
    """What it is of, how far it goes, and the last of what it holds, as it was sent."""
    bench.do(bind())
    bench.do(entries([1, 2]))
    named = event(1, "message_started", {"role": "user"}, message="m", tool="t")
    bench.do(RecordEvents("run-1", None, (named, event(2))))
    assert session(bench) == {
        "binding": {
            "schema": "pi-workflows.session-binding.v1",
            "runId": "run-1",
            "piSessionId": SESSION,
            "cwd": "/project",
            "boundAt": START_MS,
        },
        "entryPage": {
            "start": 0,
            "total": 2,
            "items": [
                {
                    "seq": seq,
                    "at": START_MS,
                    "entry": {"type": "message", "id": f"entry-{seq}", "text": "hello"},
                }
                for seq in (1, 2)
            ],
        },
        "eventPage": {
            "start": 0,
            "total": 2,
            "items": [
                {
                    "seq": 1,
                    "at": START_MS + 1,
                    "turnId": "turn-1",
                    "messageId": "m",
                    "toolCallId": "t",
                    "type": "message_started",
                    "payload": {"role": "user"},
                },
                {
                    "seq": 2,
                    "at": START_MS + 2,
                    "turnId": "turn-1",
                    "type": "turn_started",
                    "payload": {"turnIndex": 2},
                },
            ],
        },
        "capture": {
            "schema": "pi-workflows.session-capture.v1",
            "eventSchema": "pi-workflows.session-event.v1",
            "status": "recording",
            "eventCount": 2,
            "entryCount": 2,
            "lastEventSeq": 2,
        },
        "integrity": SOUND,
        "replayCheckpoint": None,
    }
    bench.do(complete(2, 2))
    assert at(session(bench), "capture", "status") == "complete"
    bench.clock.advance_ms(1)
    bench.do(bind(key="again"))
    assert at(session(bench), "capture", "eventCount") == 0
    assert at(session(bench), "eventPage", "total") == 2


def test_what_is_not_whole_is_told(bench: Harness) -> None:
    """A capture that failed, and one that outlives its run, until it ends, too."""

    def found() -> list[Json]:
        integrity = at(session(bench), "integrity")
        assert at(integrity, "status") == ("invalid" if at(integrity, "diagnostics") else "valid")
        return [each["code"] for each in items({"d": at(integrity, "diagnostics")}, "d")]

    bench.do(bind())
    assert found() == []
    bench.do(CancelRun("run-1"))
    assert found() == ["captureOpen"]
    bench.do(complete(0, 0))
    assert found() == []
    bench.do(bind(key="again"))
    bench.do(failed(key="again"))
    assert found() == ["captureFailed"]
    bench.clock.advance_ms(1)
    bench.do(bind(key="third"))
    assert found() == ["captureOpen", "captureFailed"]


def test_why_a_capture_failed_is_shown(bench: Harness) -> None:
    """The failure as the recorder told it."""
    bench.do(bind())
    bench.do(failed())
    assert at(session(bench), "capture", "failure") == {
        "failedAt": START_MS,
        "code": "overflow",
        "message": "too much",
    }


@pytest.mark.parametrize("cursor", [None, 0, 1, 255, 256, 300, 600, 699, 9_999])
def test_a_page_of_events_begins_with_its_state(bench: Harness, cursor: int | None) -> None:
    """Wherever it lies, it carries what all events before its first one lead to."""
    records = list(conversation(random.Random(3), 700))  # noqa: S311 - which events, not secrets
    bench.do(bind())
    recorded(bench, records)
    found = page(bench, "session_events", cursor)
    start, total = at(found, "start"), at(found, "total")
    assert isinstance(start, int)
    assert total == 700
    shown = numbers(found)
    assert shown == list(range(start + 1, start + 1 + len(shown)))
    assert 0 < len(shown) <= 256
    assert len(canonical.encode(at(found, "items"))) <= PAGE_BYTES_MAX
    assert (700 if cursor is None else min(cursor, 699) + 1) in shown
    if start == 0:
        assert found["replayCheckpoint"] is None
        return
    replay = ReplayState.parse(canonical.encode(found["replayCheckpoint"]))
    assert replay.through_seq == start
    taken = [folded(record, record.seq) for record in records]
    assert replay.reduced() == fold(ReplayState(), taken[:start]).reduced()
    boundary = start // 256 * 256
    begun = fold(ReplayState(), taken[:boundary])
    assert replay == fold(begun.reduced() if boundary else begun, taken[boundary:start])
    rest = [event for event in taken if event.seq in shown]
    straight = fold(ReplayState(), taken[: start + len(shown)])
    assert fold(replay, rest).reduced() == straight.reduced()


def test_entries_are_paged(bench: Harness) -> None:
    """Windows of entries around a cursor, each as Pi wrote it."""
    bench.do(bind())
    for first in (1, 201):
        bench.do(entries(range(first, first + 200)))
    for cursor in (None, 0, 200, 399):
        found = page(bench, "session_entries", cursor)
        shown = numbers(found)
        assert at(found, "total") == 400
        assert (400 if cursor is None else cursor + 1) in shown
        assert "replayCheckpoint" not in found
        for item in items(found, "items"):
            assert at(item, "entry", "id") == f"entry-{item['seq']}"


def test_large_and_misleading_values_are_shown_as_they_are(bench: Harness) -> None:
    """A large entry is a reference to its content, and what looks like one is marked."""
    bench.do(bind())
    large: dict[str, Json] = {"id": "large", "text": "x" * INLINE_BYTES_MAX}
    posing: dict[str, Json] = {"id": "posing", "it": {"$artifact": {"path": "/etc/passwd"}}}
    records = (NewEntry.of(1, large, "entries"), NewEntry.of(2, posing, "entries"))
    bench.do(RecordEntries("run-1", None, records))
    many: dict[str, Json] = {"turnIndex": 0, "toolCallIds": [f"call-{n:060}" for n in range(512)]}
    bench.do(RecordEvents("run-1", None, (event(1, "turn_finished", many),)))
    first, second = items(page(bench, "session_entries"), "items")
    (turn,) = items(page(bench, "session_events"), "items")
    assert at(second, "entry", "it") == {"$escaped": {"$artifact": {"path": "/etc/passwd"}}}
    with bench.store.snapshot() as read:
        for value, content in (
            (first["entry"], large),
            (turn["payload"], {**many, "at": START_MS + 1}),
        ):
            path = at(value, "$artifact", "path")
            assert isinstance(path, str)
            chunk = content_chunk(read, "run-1", path, 0)
            assert chunk.sha256 == Blob.json(content).hex
            with pytest.raises(NotFound):
                content_chunk(read, "run-2", path, 0)
    assert turn["at"] == START_MS + 1


def test_a_state_that_is_too_large_is_cut(bench: Harness) -> None:
    """Whatever a recorder never ends, a page's state stays small."""
    bench.do(bind())
    records: list[NewEvent] = []

    def add(kind: str, payload: dict[str, Json], message: str) -> None:
        records.append(event(len(records) + 1, kind, payload, message=message))

    for number in range(20):
        name = f"m{number}-" + "x" * 240
        add("message_started", {"role": "assistant"}, name)
        for index in range(60):
            add("assistant_event", {"type": "text_start", "contentIndex": index}, name)
    recorded(bench, records)
    found = page(bench, "session_events", len(records) - 1)
    content = canonical.encode(found["replayCheckpoint"])
    assert len(content) <= INLINE_BYTES_MAX
    state = ReplayState.parse(content)
    assert 0 < len(state.messages) < 16
    assert state.messages[-1].message_id.startswith("m1")


@pytest.mark.slow
def test_a_long_capture_is_read_at_the_cost_of_a_short_one(bench: Harness) -> None:
    """Once its pages are full, a capture's view and pages take the same work at any length."""
    bench.do(bench.start("run-2", session="session-2"))
    for run_id, length in (("run-1", 768), ("run-2", 3 * 768)):
        bench.do(bind(run_id))
        for first in range(1, length, 256):
            bench.do(events(range(first, first + 256), run_id))
            bench.do(entries(range(first, first + 256), run_id))
    process = ProcessFacts(bench.clock.now_ms())
    kinds: tuple[WindowKind, ...] = ("session_entries", "session_events")

    def reads(read: Read, run_id: str) -> None:
        run_view(read, run_id, process)
        for kind in kinds:
            for cursor in (None, 300):
                run_page(read, run_id, kind, cursor)

    costs: list[int] = []
    for run_id in ("run-1", "run-2"):
        totals = Totals()
        with bench.store.transaction() as tx, measure(bench.store, totals.add):
            reads(tx.read, run_id)
        costs.append(totals.vm_steps)
    assert abs(costs[1] - costs[0]) <= 0.02 * costs[0]
