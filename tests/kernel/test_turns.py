"""The turns of a session's model: whose they are, what they cost, and what their ends mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from pi_workflows.base import canonical, ids
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message.turn import ResumeClock, SuspendClock
from pi_workflows.domain.request.closing import MISSING_SUBMISSION
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.session_rows import TurnEnd
from pi_workflows.kernel.order import Answer, Chore
from pi_workflows.store import volatile
from pi_workflows.store.transaction import Transaction
from tests.kernel.conversing import (
    BUDGET_MS,
    REQUEST,
    RUN,
    STEP,
    TURNS,
    asked,
    begun,
    reminder,
    told_end,
    unanswered,
    working,
)
from tests.kernel.harness import (
    START_MS,
    Harness,
    begin,
    end,
    end_message,
    end_turn,
    expire,
    finish,
    judge,
    report_branch,
    start_turn,
    step_message,
    submit,
)
from tests.kernel.racing import standing, told

ATTEMPT: Final = ids.attempt_id(RUN, "plan", 1)
YEARS_MS: Final = 10 * 365 * 86_400_000


def ownership(answer: Answer) -> canonical.Json:
    """Return whose a reported turn is."""
    receipt = canonical.decode(answer.receipt or b"{}")
    assert isinstance(receipt, dict)
    return receipt["ownership"]


def intervals(bench: Harness) -> list[tuple[object, object, object]]:
    """Return number, whether it is over, and active time of each interval of the step."""
    rows = [row for row in bench.dump("attempt_active_intervals") if row[0] == ATTEMPT]
    return [(row[1], row[4] is not None, row[5]) for row in rows]


def sample(bench: Harness, number: int, elapsed_ms: int) -> None:
    """Store what a server measured of an open interval."""
    now_ms = bench.clock.now_ms()

    def keep(tx: Transaction) -> None:
        volatile.sample_active_time(
            tx, ATTEMPT, number, observed_at_ms=now_ms, elapsed_ms=elapsed_ms
        )

    bench.kernel.commit((Chore(keep),), now_ms)


def unproductive(bench: Harness, count: int, reason: TurnEnd = "completed") -> None:
    """Let turns end without an answer."""
    for turn in TURNS[:count]:
        message = STEP if turn == TURNS[0] else reminder(TURNS[TURNS.index(turn) - 1])
        working(bench, message, turn)
        bench.do(end_turn(message, turn, reason))


def test_a_turn_owns_its_message_from_start_to_end(bench: Harness) -> None:
    """Its start opens the step's time, its end closes it; each report repeated is adopted."""
    asked(bench)
    bench.do(report_branch(STEP, "entry-1"))
    assert ownership(bench.do(start_turn(STEP))) == "active"
    assert ownership(bench.do(start_turn(STEP))) == "active"
    assert intervals(bench) == [(1, True, 0), (2, False, 0)]
    bench.clock.advance_ms(40)
    ended = bench.do(end_turn(STEP, elapsed_ms=40))
    assert ownership(ended) == "settled"
    assert intervals(bench)[1:] == [(2, True, 40)]
    again = bench.do(end_turn(STEP, elapsed_ms=90))
    assert (ownership(again), told(again)) == ("settled", "adopted")
    assert ownership(bench.do(start_turn(STEP))) == "settled"
    (row,) = bench.dump("workflow_turns")
    assert row[5:] == ("completed", "said-turn-1", 40, START_MS, START_MS + 40)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (start_turn("message-of-nobody"), "messageMissing"),
        (start_turn(STEP, session="session-2"), "messageTarget"),
        (start_turn(STEP, run_id="run-2"), "messageTarget"),
        (start_turn(STEP), "messageNotSent"),
        (end_turn(STEP, session="session-2"), "messageTarget"),
    ],
)
def test_a_turn_of_nobodys_message_is_refused(bench: Harness, wrong: object, code: str) -> None:
    """It names a message of its own session and run that a branch holds."""
    asked(bench)
    assert told(bench.answer(wrong)) == code  # type: ignore[arg-type] # commands
    assert bench.dump("workflow_turns") == []


def test_a_turns_name_is_of_one_message(bench: Harness) -> None:
    """Another message cannot take it, nor end it."""
    asked(bench)
    unproductive(bench, 1)
    bench.do(report_branch(reminder("turn-1"), "entry-2"))
    assert told(bench.answer(start_turn(reminder("turn-1")))) == "turnReused"
    assert told(bench.answer(end_turn(reminder("turn-1")))) == "turnReused"


def test_work_that_is_not_wanted_any_more_is_nobodys(bench: Harness) -> None:
    """A start for a paused, answered or ended run's step is adopted and owned by nobody."""
    asked(bench)
    bench.do(report_branch(STEP, "entry-1"), PauseRun(RUN))
    assert ownership(bench.do(start_turn(STEP))) == "absent"
    bench.do(ResumeRun(RUN))
    resumed = step_message("plan", "resumed:2")
    bench.do(report_branch(resumed, "entry-2"))
    bench.do(submit(REQUEST, revision=2), judge(REQUEST))
    assert ownership(bench.do(start_turn(resumed))) == "absent"
    bench.do(CancelRun(RUN))
    assert ownership(bench.do(start_turn(resumed, "turn-2"))) == "absent"
    assert ownership(bench.do(end_turn(resumed, "turn-2"))) == "absent"
    assert bench.dump("workflow_turns") == []


def test_an_aborted_turn_pauses_its_run(bench: Harness) -> None:
    """One command ends the turn and pauses; the resumed step is told again under a new revision."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST))
    answer = bench.do(end_turn(STEP, reason="aborted", elapsed_ms=30))
    assert [event.fact.type for event in answer.events] == ["turn.ended", "run.paused"]
    left = standing(bench)
    assert (left["paused"], left["queue"], left["answers"]) == (True, "parked", {"s1": "rejected"})
    assert intervals(bench)[1:] == [(2, True, 30)]
    bench.do(ResumeRun(RUN))
    assert [row[6] for row in bench.dump("interactive_requests")] == [2]
    assert standing(bench)["messages"] == ["step sent", "step pending"]


def test_case_10_no_jump_of_the_wall_clock_changes_a_budget(bench: Harness) -> None:
    """Ten years forth and back: what a turn costs is what was measured of it, nothing else."""
    asked(bench)
    working(bench)
    bench.clock.wall_ms += YEARS_MS
    sample(bench, 2, 500)
    bench.do(end_turn(STEP, elapsed_ms=700))
    bench.clock.wall_ms -= 2 * YEARS_MS
    working(bench, reminder("turn-1"), "turn-2")
    bench.clock.wall_ms += YEARS_MS
    assert told(bench.answer(expire(REQUEST, BUDGET_MS - 701))) == "adopted"
    assert intervals(bench) == [(1, True, 0), (2, True, 700), (3, False, 0)]
    assert told(bench.answer(expire(REQUEST, BUDGET_MS - 700))) == "accepted"


def test_case_11_a_lost_server_closes_at_its_last_sample(bench: Harness) -> None:
    """What nobody measured counts for nobody, and the attempt began when it began."""
    asked(bench)
    working(bench)
    bench.clock.advance_ms(5_000)
    sample(bench, 2, 5_000)
    bench.clock.advance_ms(3_000)
    bench.store.crash()
    bench.clock.advance_ms(3_600_000)
    bench.reopen()
    bench.do(SuspendClock(RUN, ATTEMPT, 0, "serverLost"))
    row = next(row for row in bench.dump("attempt_active_intervals") if row[1] == 2)
    assert row[2:] == (START_MS, START_MS + 5_000, START_MS + 5_000, 5_000)
    attempt = next(row for row in bench.dump("node_attempts") if row[0] == ATTEMPT)
    assert (attempt[6], attempt[14]) == ("waiting", START_MS)
    assert standing(bench)["turns"] == {"turn-1": "started"}
    bench.do(ResumeClock(RUN, "turn-1"))
    assert intervals(bench)[2:] == [(3, False, 0)]


def test_case_12_time_counts_once(bench: Harness) -> None:
    """Pause, disconnection and a second start: one interval; nothing opens while paused."""
    asked(bench)
    working(bench)
    bench.do(start_turn(STEP))
    bench.do(SuspendClock(RUN, ATTEMPT, 40, "disconnected"))
    assert told(bench.answer(SuspendClock(RUN, ATTEMPT, 60, "disconnected"))) == "adopted"
    bench.do(PauseRun(RUN, elapsed_ms=60))
    assert told(bench.answer(ResumeClock(RUN, "turn-1"))) == "adopted"
    assert ownership(bench.do(start_turn(STEP))) == "active"
    assert intervals(bench) == [(1, True, 0), (2, True, 40)]
    bench.do(ResumeRun(RUN))
    bench.do(ResumeClock(RUN, "turn-1"))
    assert told(bench.answer(ResumeClock(RUN, "turn-1"))) == "adopted"
    assert intervals(bench)[2:] == [(3, False, 0)]
    bench.do(end_turn(STEP, elapsed_ms=2))
    assert intervals(bench)[2:] == [(3, True, 2)]


def test_case_21_no_reminder_while_an_answer_is_judged(bench: Harness) -> None:
    """The turn's end closes the time alone; an accepted answer needs no reminder."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST))
    answer = bench.do(end_turn(STEP))
    assert [event.fact.type for event in answer.events] == ["turn.ended", "attempt.interval_closed"]
    bench.do(judge(REQUEST))
    assert standing(bench)["messages"] == ["step sent"]


def test_case_21_an_answer_refused_after_its_turn_is_reminded_of(bench: Harness) -> None:
    """Nobody works on the step then: the session is told again, as after any such turn."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST))
    bench.do(end_turn(STEP))
    bench.answer(judge(REQUEST, error="No."))
    assert standing(bench)["messages"] == ["step sent", "step pending"]
    assert reminder("turn-1") in {row[0] for row in bench.dump("workflow_messages")}


def test_case_21_a_refusal_after_the_third_turn_ends_the_step(bench: Harness) -> None:
    """The candidate gets its reason, the step its end, in one command; two refusals remind once."""
    asked(bench)
    unproductive(bench, 1)
    working(bench, reminder("turn-1"), "turn-2")
    bench.do(submit(REQUEST))
    bench.do(end_turn(reminder("turn-1"), "turn-2"))
    bench.answer(judge(REQUEST, error="No."))
    bench.do(submit(REQUEST, name="s2"))
    bench.answer(judge(REQUEST, name="s2", error="No."))
    assert standing(bench)["messages"] == ["step sent", "step sent", "step pending"]
    working(bench, reminder("turn-2"), "turn-3")
    bench.do(submit(REQUEST, name="s3"))
    bench.do(end_turn(reminder("turn-2"), "turn-3"))
    refused = bench.answer(judge(REQUEST, name="s3", error="Not at all."))
    assert canonical.decode(refused.receipt or b"")["receipt"] == {"error": "Not at all."}  # type: ignore[index,call-overload] # a document
    left = standing(bench)
    assert (left["requests"], left["queue"]) == (["cancelled"], "queued")
    assert left["answers"] == {"s1": "rejected", "s2": "rejected", "s3": "rejected"}


@pytest.mark.parametrize("reason", ["completed", "error"])
def test_case_21_the_third_unproductive_turn_is_the_last(bench: Harness, reason: TurnEnd) -> None:
    """Two reminders, then the attempt fails as `missingSubmission` and its route goes on."""
    asked(bench)
    unproductive(bench, 2, reason)
    assert standing(bench)["messages"] == ["step sent", "step sent", "step pending"]
    working(bench, reminder("turn-2"), "turn-3")
    bench.do(end_turn(reminder("turn-2"), "turn-3", reason))
    left = standing(bench)
    assert (left["requests"], left["run"], left["queue"]) == (["cancelled"], "queued", "queued")
    failure = Failure(MISSING_SUBMISSION, "3 turns of the session ended without an answer")
    permit = bench.relaunch()
    wrong = bench.answer(unanswered(), permit=permit)
    assert told(wrong) == "outcomeMismatch"
    bench.do(unanswered("failed", failure), begin("late"), end("late", 1), permit=permit)
    bench.do(finish(1), permit=permit)


def test_case_21_neither_a_pause_nor_a_reconnection_forgives_a_turn(bench: Harness) -> None:
    """The count is of the request: its resumed revision has no reminders of its own."""
    asked(bench)
    unproductive(bench, 2)
    bench.do(PauseRun(RUN))
    bench.do(ResumeRun(RUN))
    resumed = step_message("plan", "resumed:2")
    working(bench, resumed, "turn-3")
    bench.do(end_turn(resumed, "turn-3"))
    assert standing(bench)["requests"] == ["cancelled"]


def test_a_lost_turn_is_not_reminded_of(bench: Harness) -> None:
    """Nobody knows what it did; the branch that lost its message is told it once more."""
    asked(bench)
    working(bench)
    bench.do(report_branch(STEP, "entry-turn-1"))
    assert standing(bench)["turns"] == {"turn-1": "lost"}
    assert standing(bench)["messages"] == ["step sent"]
    bench.do(report_branch(STEP))
    assert standing(bench)["messages"] == ["step sent", "step pending"]
    assert told(bench.answer(report_branch(STEP))) == "adopted"
    again = step_message("plan", f"absent:{STEP}")
    working(bench, again, "turn-2")
    assert standing(bench)["intervals"] == [False, False, True]


def test_case_29_a_run_that_ends_loses_its_open_turn(bench: Harness) -> None:
    """A late end adopts the loss; an ordinary turn afterwards belongs to no run."""
    asked(bench)
    working(bench)
    bench.do(CancelRun(RUN))
    left = standing(bench)
    assert (left["turns"], left["intervals"]) == ({"turn-1": "lost"}, [False, False])
    late = bench.do(end_turn(STEP))
    assert (told(late), ownership(late)) == ("adopted", "settled")
    assert standing(bench)["turns"] == {"turn-1": "lost"}
    assert ownership(bench.do(start_turn(STEP, "turn-2"))) == "absent"
    assert told(bench.answer(submit(REQUEST))) == "requestCancelled"
    bench.do(bench.start("run-2", session="session-1"))
    assert [row[0] for row in bench.dump("workflow_turns")] == ["turn-1"]


def test_case_29_a_finished_run_loses_the_turn_that_answered_it(bench: Harness) -> None:
    """The model that submitted goes on for a while; its run does not wait for that."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST), judge(REQUEST))
    assert standing(bench)["turns"] == {"turn-1": "started"}
    permit = bench.relaunch()
    bench.do(end("plan", "done"), begin("told", node_type="notify"), permit=permit)
    bench.do(end("told", outcome="failed"), finish(outcome="failed"), permit=permit)
    assert standing(bench)["turns"] == {"turn-1": "lost"}


def test_a_turn_about_an_end_stops_what_follows_when_it_is_aborted(bench: Harness) -> None:
    """One event of the message says both; the run that ended does not change."""
    told_end(bench)
    answer = bench.do(end_turn(end_message(), TURNS[1], "aborted"))
    assert [event.fact.type for event in answer.events] == ["turn.ended"]
    assert standing(bench)["stops"] == ["interrupted"]
    assert standing(bench)["run"] == "failed"


def test_active_time_is_never_below_its_last_sample(bench: Harness) -> None:
    """Whatever is reported of a turn, what was stored of it before counts at least."""
    permit = begun(bench)
    assert permit is not None
    bench.do(replace(report_branch(None)))
    sample(bench, 1, 9)
    assert intervals(bench) == [(1, False, 9)]
    bench.do(PauseRun(RUN, elapsed_ms=3))
    assert intervals(bench) == [(1, True, 9)]
