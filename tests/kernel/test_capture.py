"""Captures: each record once, in its place, whatever is sent again; and a log that gives them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pi_workflows.base import ids
from pi_workflows.base.errors import Corrupt, Outcome
from pi_workflows.base.sql import Statement
from pi_workflows.domain.fact import Command
from pi_workflows.domain.message.turn import EndTurn
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.domain.session.capture import CaptureCommand, EndCapture, RecordEvents
from pi_workflows.domain.session.checkpoints import boundaries, state_at
from pi_workflows.domain.session.reducer import ReplayState, fold
from pi_workflows.kernel.comparison import compare
from pi_workflows.kernel.rebuild import Replay, rebuild
from pi_workflows.kernel.verify import verify
from pi_workflows.store.driver import connect
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.opening import FILE_NAME
from pi_workflows.store.scratch import create_scratch
from projections import route
from tests.kernel import conversing
from tests.kernel.harness import SESSION, Harness, begin, end, finish, report_branch, start_turn
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.recording import (
    bind,
    complete,
    conversation,
    entries,
    event,
    events,
    failed,
    folded,
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """Drive a new database, and compare it with a rebuild from its log afterwards."""
    harness = Harness(tmp_path / "state")
    harness.do(harness.start())
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()


def refused(bench: Harness, command: Command) -> tuple[Outcome, str | None]:
    """Return how a command is refused; nothing at all changes."""
    tables = ("session_segments", "session_entries", "session_events", "viewer_runs", "events")
    before = [bench.dump(table) for table in tables]
    answer = bench.answer(command)
    assert [bench.dump(table) for table in tables] == before
    return answer.outcome, answer.code


def counts(bench: Harness) -> tuple[int, int]:
    """Return how many entries and events are stored."""
    return len(bench.dump("session_entries")), len(bench.dump("session_events"))


def test_a_capture_has_a_life(bench: Harness) -> None:
    """It is opened, filled and ended; only its ends are events, each command has a revision."""
    opened = bench.do(bind())
    assert [each.fact.type for each in opened.events] == ["segment.opened"]
    assert opened.views == {"run-1": 2}
    for revision, command in enumerate((entries([1, 2]), events([1, 2, 3])), 3):
        answer = bench.do(command)
        assert (answer.events, answer.views) == ((), {"run-1": revision})
    ended = bench.do(complete(2, 3))
    assert [each.fact.type for each in ended.events] == ["segment.completed"]
    (row,) = bench.dump("session_segments")
    assert (row[7], row[8], row[9]) == ("complete", 2, 3)
    assert [row[6] for row in bench.dump("session_entries")] == [3, 3]
    assert [row[11] for row in bench.dump("session_events")] == [4, 4, 4]


def test_what_is_sent_again_is_skipped(bench: Harness) -> None:
    """A whole batch, a part of one, and one that overlaps: each record is stored once."""
    bench.do(bind())
    bench.do(entries(range(1, 5)))
    bench.do(events(range(1, 5)))
    for command in (entries(range(1, 5)), entries([2, 3]), events(range(1, 5)), events([4])):
        answer = bench.do(command)
        assert (answer.outcome, answer.views) == (Outcome.ADOPTED, {})
    assert counts(bench) == (4, 4)
    assert bench.do(entries(range(3, 8))).outcome is Outcome.ACCEPTED
    assert bench.do(events(range(2, 6))).outcome is Outcome.ACCEPTED
    assert counts(bench) == (7, 5)
    assert bench.do(bind()).outcome is Outcome.ADOPTED


def test_something_else_under_a_number_is_a_conflict(bench: Harness) -> None:
    """Other content, another name, another time: what is stored stays."""
    bench.do(bind())
    bench.do(entries([1, 2]))
    bench.do(events([1, 2]))
    conflict = (Outcome.CONFLICT, "captureDiffers")
    assert refused(bench, entries([1, 2], text="else")) == conflict
    assert refused(bench, entries([2, 3], text="else")) == conflict
    other = RecordEvents("run-1", None, (event(2, "turn_started", {"turnIndex": 9}),))
    assert refused(bench, other) == conflict
    named = RecordEvents("run-1", None, (event(2, message="m"),))
    assert refused(bench, named) == conflict
    assert refused(bench, bind(session="session-2")) == (Outcome.CONFLICT, "captureBound")


def test_an_entry_has_one_number(bench: Harness) -> None:
    """The same entry twice in a batch, or again later, is a conflict."""
    bench.do(bind())
    bench.do(entries([1]))
    first = entries([2]).entries[0]
    again = type(first)(2, "entry-1", first.content)
    reused = (Outcome.CONFLICT, "entryReused")
    assert refused(bench, type(entries([1]))("run-1", None, (again,))) == reused
    twice = (first, type(first)(3, first.entry_id, first.content))
    assert refused(bench, type(entries([1]))("run-1", None, twice)) == reused


@pytest.mark.parametrize("record", [entries, events])
@pytest.mark.parametrize("numbers", [[3], [4, 5], [2, 4], [2, 1], [2, 2]])
def test_a_gap_is_refused(
    bench: Harness, record: Callable[[list[int]], CaptureCommand], numbers: list[int]
) -> None:
    """A batch goes on where the last one ended, and has no gap of its own."""
    bench.do(bind())
    bench.do(record([1]))
    assert refused(bench, record(numbers)) == (Outcome.REJECTED, "captureGap")


def test_nothing_is_recorded_before_and_after(bench: Harness) -> None:
    """Before a capture is bound there is none; once it has ended it stays as it is."""
    early: tuple[Command, ...] = (entries([1]), events([1]), complete(0, 0), failed())
    for command in early:
        assert refused(bench, command) == (Outcome.NOT_FOUND, "captureMissing")
    bench.do(bind())
    bench.do(events([1]))
    bench.do(failed())
    ended = (Outcome.REJECTED, "captureEnded")
    late: tuple[Command, ...] = (events([2]), events([1, 2]), entries([1]), bind(), complete(0, 1))
    for command in late:
        assert refused(bench, command) == ended
    assert bench.do(events([1])).outcome is Outcome.ADOPTED
    assert bench.do(failed()).outcome is Outcome.ADOPTED
    assert refused(bench, bind("run-2")) == (Outcome.NOT_FOUND, "runMissing")


def test_a_complete_capture_is_whole(bench: Harness) -> None:
    """It has what the recorder sent, and every entry that an event names; else it may only fail."""
    bench.do(bind())
    settled = event(
        1, "message_finished", {"role": "user", "settled": True, "entryId": "entry-1"}, message="m"
    )
    bench.do(RecordEvents("run-1", None, (settled,)))
    for entry_count, event_count, last in ((1, 1, 1), (0, 0, 0), (0, 1, 2)):
        command = EndCapture("run-1", None, "complete", entry_count, event_count, last)
        assert refused(bench, command) == (Outcome.REJECTED, "captureCount")
    assert refused(bench, complete(0, 1)) == (Outcome.REJECTED, "captureReferences")
    bench.do(entries([1]))
    assert refused(bench, complete(0, 1)) == (Outcome.REJECTED, "captureCount")
    bench.do(complete(1, 1))
    assert bench.do(complete(1, 1)).outcome is Outcome.ADOPTED


def test_a_capture_belongs_to_its_run(bench: Harness) -> None:
    """Its key may be an attempt of the run or no attempt at all, and so may an event's attempt."""
    permit = bench.relaunch()
    bench.do(begin("one"), permit=permit)
    own = ids.attempt_id("run-1", "one", 1)
    bench.do(bench.start("run-2", session="session-2"))
    bench.do(bind(key=own))
    bench.do(bind(key="turn-7"))
    rows = {row[3]: row[2] for row in bench.dump("session_segments")}
    assert rows == {own: own, "turn-7": None}
    bench.do(RecordEvents("run-1", own, (event(1, attempt=own),)))
    foreign = (Outcome.REJECTED, "attemptForeign")
    assert refused(bench, bind("run-2", own)) == foreign
    strange = RecordEvents("run-1", own, (event(2), event(3, attempt="attempt-x")))
    assert refused(bench, strange) == foreign
    bench.do(bind("run-2"))
    borrowed = RecordEvents("run-2", None, (event(1, attempt=own),))
    assert refused(bench, borrowed) == foreign


def test_a_failed_capture_never_fails_its_run(bench: Harness) -> None:
    """The run completes as if nobody had watched, and what it had captured stays."""
    permit = bench.relaunch()
    bench.do(bind())
    bench.do(events([1, 2]))
    bench.do(failed())
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), permit=permit)
    bench.do(begin("two"), permit=permit)
    bench.do(end("two", 2), permit=permit)
    bench.do(finish(2), permit=permit)
    (row,) = bench.dump("runs")
    assert row[14] == "completed"
    assert counts(bench) == (0, 2)


def test_a_run_that_ended_is_recorded_to_the_end(bench: Harness) -> None:
    """What Pi still says after the end of a run is captured, too."""
    bench.do(bind())
    bench.do(CancelRun("run-1"))
    bench.do(entries([1]))
    bench.do(bind(key="terminal"))
    bench.do(events([1], key="terminal"))
    bench.do(complete(1, 0))


def test_captures_of_a_run_share_its_numbers(bench: Harness) -> None:
    """In each capture records count from 1, over the run they go on; checkpoints are the run's."""
    for key in ("a", "b"):
        bench.do(bind(key=key))
    for first in (1, 101, 201):
        for key in ("a", "b"):
            bench.do(events(range(first, first + 100), key=key))
    numbers = [row[3] for row in bench.dump("session_events")]
    assert sorted(map(str, numbers)) == sorted(map(str, range(1, 601)))
    assert [row[1] for row in bench.dump("viewer_session_checkpoints")] == [256, 512]


def test_checkpoints_are_a_straight_fold(bench: Harness) -> None:
    """At every boundary and between, the stored states lead to what all events lead to."""
    chance = random.Random(7)  # noqa: S311 - which events, not secrets
    records = list(conversation(chance, 1_100))
    bench.do(bind())
    start = 0
    while start < len(records):
        batch = tuple(records[start : start + chance.randrange(1, 257)])
        bench.do(RecordEvents("run-1", None, batch))
        start += len(batch)
    taken = [folded(record, record.seq) for record in records]
    stored = {row[1]: row[2] for row in bench.dump("viewer_session_checkpoints")}
    assert stored == {
        seq: fold(ReplayState(), taken[:seq]).reduced().blob().digest
        for seq in (256, 512, 768, 1_024)
    }
    with bench.store.snapshot() as read:
        for seq in (0, 1, 255, 256, 257, 511, 512, 700, 1_024, 1_100):
            straight = fold(ReplayState(), taken[:seq]).reduced()
            assert state_at(read, "run-1", seq).reduced() == straight
    assert [*boundaries(0, 1_100)] == [256, 512, 768, 1_024]
    assert [*boundaries(256, 511)] == []


@pytest.mark.parametrize("seed", range(3))
def test_the_log_and_the_journals_give_every_row(tmp_path: Path, seed: int) -> None:
    """Runs and captures of many sessions, mixed in any order and across restarts, are rebuilt."""
    chance = random.Random(seed)  # noqa: S311 - which commands, not secrets
    bench = Harness(tmp_path / "state")
    runs = [_Recorded(bench, chance, f"run-{number}") for number in range(4)]
    for _ in range(100):
        chance.choice(runs).step()
        if chance.random() < 0.02:
            bench.store.close()
            bench.reopen()
            bench.clock.advance_ms(120_000)
        bench.clock.advance_ms(chance.randrange(3))
    assert_rebuilds(bench.store)
    with bench.store.snapshot() as live:
        result = verify(live, quick=False, scratch=lambda: create_scratch(None), projectors=route)
    assert result.violations == ()
    assert len(bench.dump("session_events")) > 1_000
    assert bench.dump("viewer_session_checkpoints")
    bench.store.close()


class _Recorded:
    """A run with its recorder, which forgets what was answered and sends it again."""

    def __init__(self, bench: Harness, chance: random.Random, run_id: str) -> None:
        self._bench = bench
        self._chance = chance
        self._run_id = run_id
        self._key: str | None = None
        self._captures = 0
        self._is_open = False
        self._records = list(conversation(chance, 2_000))
        self._sent = [0, 0]
        self._visits = 0
        bench.do(bench.start(run_id))

    def step(self) -> None:
        """Do one thing."""
        if not self._is_open:
            self._captures += 1
            self._key = f"key-{self._captures}" if self._captures > 1 else None
            self._sent = [0, 0]
            self._bench.do(bind(self._run_id, self._key))
            self._is_open = True
            return
        self._chance.choices((self._entries, self._events, self._end, self._work), (3, 8, 1, 3))[
            0
        ]()

    def _entries(self) -> None:
        overlap = self._chance.randrange(0, min(self._sent[0], 5) + 1)
        first = self._sent[0] - overlap + 1
        last = self._sent[0] + self._chance.randrange(0, 6)
        if last >= first:
            self._bench.do(entries(range(first, last + 1), self._run_id, self._key))
            self._sent[0] = max(self._sent[0], last)

    def _events(self) -> None:
        overlap = self._chance.randrange(0, min(self._sent[1], 5) + 1)
        first = self._sent[1] - overlap
        batch = self._records[first : first + self._chance.randrange(1, 250)]
        if batch:
            self._bench.do(RecordEvents(self._run_id, self._key, tuple(batch)))
            self._sent[1] = max(self._sent[1], first + len(batch))

    def _end(self) -> None:
        self._bench.do(failed(self._run_id, self._key))
        self._is_open = False

    def _work(self) -> None:
        """Let the run itself go on, so that events lie between the flushes."""
        self._visits += 1
        name = f"run-{self._run_id}-{self._visits}"
        self._bench.do(self._bench.start(name))
        if self._chance.random() < 0.5:
            self._bench.do(CancelRun(name))


def test_a_partial_replay_has_what_came_before(bench: Harness) -> None:
    """At an event, a rebuild has the flushes before it and none behind it."""
    bench.do(bind())
    bench.do(events([1, 2]))
    bench.do(CancelRun("run-1"))
    bench.do(events([3]))
    opened, last = 2, _number(bench.dump("events")[-1][0])
    with bench.store.snapshot() as source, create_scratch(None) as target:
        replay = Replay(source, target, route)
        for seq, expected in ((opened, 0), (last, 2), (None, 3)):
            replay.advance(seq)
            with target.snapshot() as read:
                assert read.one(int, _EVENT_COUNT) == expected
        with target.snapshot() as read:
            assert compare(source, read) == []


_EVENT_COUNT = Statement("event_count", "SELECT count(*) FROM session_events")


def _number(value: object) -> int:
    """Return a column that is a number."""
    assert isinstance(value, int)
    return value


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE session_events SET presentation_revision = 9 WHERE event_seq = 2",
        "UPDATE session_events SET event_seq = 7 WHERE event_seq = 3",
        "DELETE FROM session_entries WHERE entry_seq = 1",
        "UPDATE session_entries SET segment_id = 'other'",
    ],
)
def test_a_journal_that_was_edited_gives_no_rows(tmp_path: Path, edit: str) -> None:
    """Rows whose revision or number is another one cannot be replayed, and say whose they are."""
    bench = Harness(tmp_path / "state")
    bench.do(bench.start())
    bench.do(bind())
    bench.do(entries([1, 2]))
    bench.do(events([1, 2, 3]))
    bench.store.close()
    file = bench.directory / FILE_NAME
    with closing(connect(str(file))) as connection:
        connection.pragma("foreign_keys", "OFF")
        connection.execute(edit)
    with (
        open_inactive(file, live_directory=None) as source,
        create_scratch(None) as target,
        pytest.raises(Corrupt) as caught,
    ):
        rebuild(source, target, route)
    assert (caught.value.reason_code, caught.value.field) == ("replay", "runs.run-1")


def test_a_step_knows_its_part_of_the_session(tmp_path: Path) -> None:
    """A capture for an attempt links its first and last entry, its message and its answer, once."""
    bench = Harness(tmp_path / "state")
    conversing.asked(bench)
    key = ids.attempt_id("run-1", "plan", 1)
    bench.do(report_branch(conversing.STEP, "entry-2"))
    bench.do(start_turn(conversing.STEP))
    bench.do(EndTurn("run-1", SESSION, conversing.STEP, "turn-1", "completed", "entry-3"))
    bench.do(bind(key=key))
    bench.do(entries([1, 2, 3, 4], key=key))
    answer = bench.do(complete(4, 0, key=key))
    assert [event.fact.type for event in answer.events] == [
        "segment.completed",
        "attempt.entries_linked",
    ]
    segment = ids.segment_id("run-1", key)
    assert sorted(bench.dump("attempt_entries")) == [
        (key, "first", segment, "entry-1"),
        (key, "last", segment, "entry-4"),
        (key, "prompt", segment, "entry-2"),
        (key, "response", segment, "entry-3"),
    ]
    assert bench.answer(complete(4, 0, key=key)).events == ()
    assert_rebuilds(bench.store)
    bench.store.close()
