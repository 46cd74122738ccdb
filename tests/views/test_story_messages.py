"""What a story says of a run and its session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.attempt.notice import Notify
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message.recovery import StopRecovery
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from tests.kernel.conversing import (
    BUDGET_MS,
    REQUEST,
    STEP,
    TURNS,
    asked,
    reminder,
    told_end,
    unanswered,
)
from tests.kernel.harness import (
    Harness,
    ask_text,
    begin,
    end,
    end_message,
    end_turn,
    expire,
    finish,
    judge,
    report_branch,
    request_of,
    start_turn,
    step_message,
    submit,
    tell_end,
    text,
)
from tests.views.test_story import lines, told

_MODEL: Final = Actor("session", "hunter2-planted")
_SAID_MS: Final = 20_000
_SAY: Final = step_message("say")
_NOTICE: Final = ids.message_id("notification", "run-1/told/1", "notice")


def work(bench: Harness, message: str, turn: str) -> None:
    """Tell a session a message after a while, and let its model work for twenty seconds."""
    bench.clock.advance_ms(1_500)
    bench.do(report_branch(message, f"entry-{turn}"), actor=_MODEL)
    bench.do(start_turn(message, turn), actor=_MODEL)
    bench.clock.advance_ms(_SAID_MS)


def corrected(bench: Harness) -> None:
    """An answer is refused and corrected; a text is too long and is given after a reminder."""
    asked(bench)
    work(bench, STEP, "t1")
    bench.do(submit(REQUEST, "bad"), actor=_MODEL)
    bench.answer(judge(REQUEST, error="no good"))
    bench.clock.advance_ms(5_000)
    bench.do(submit(REQUEST, "good", name="s2"), actor=_MODEL)
    bench.do(judge(REQUEST, "good", name="s2", elapsed_ms=25_000))
    bench.do(end_turn(STEP, "t1"), actor=_MODEL)
    permit = bench.relaunch()
    notice = Notify("run-1", begin("told").attempt_id, Blob.json("hello"), "progress")
    bench.do(end("plan", "good"), begin("told", node_type="notify"), notice, permit=permit)
    bench.do(begin("say", node_type="agent"), ask_text("say", 80), permit=permit)
    bench.do(report_branch(_NOTICE, "entry-notice"), actor=_MODEL)
    work(bench, _SAY, "t2")
    bench.answer(text(request_of("say"), "x" * 81, name="s3"), actor=_MODEL)
    bench.do(end_turn(_SAY, "t2", elapsed_ms=_SAID_MS), actor=_MODEL)
    work(bench, step_message("say", "reminder:t2"), "t3")
    bench.do(text(request_of("say"), "all good", name="s4"), actor=_MODEL)
    permit = bench.relaunch()
    bench.do(end("say", "all good"), finish("all good"), permit=permit)
    bench.do(tell_end())
    work(bench, end_message(), "t4")
    bench.do(end_turn(end_message(), "t4"), actor=_MODEL)


def missing(bench: Harness) -> None:
    """Three turns end without an answer."""
    asked(bench)
    message = STEP
    for turn in TURNS:
        work(bench, message, turn)
        bench.do(end_turn(message, turn, elapsed_ms=_SAID_MS), actor=_MODEL)
        message = reminder(turn)
    permit = bench.relaunch()
    failure = Failure("missingSubmission", "3 turns of the session ended without an answer")
    bench.do(unanswered("failed", failure), begin("late"), permit=permit)


def interrupted(bench: Harness) -> None:
    """A person interrupts the model and goes on later; a turn is lost, and the time runs out."""
    asked(bench)
    work(bench, STEP, "t1")
    bench.do(end_turn(STEP, "t1", "aborted", elapsed_ms=_SAID_MS), actor=_MODEL)
    bench.clock.advance_ms(60_000)
    bench.do(ResumeRun("run-1"))
    again = step_message("plan", "resumed:2")
    work(bench, again, "t2")
    bench.clock.advance_ms(BUDGET_MS - 2 * _SAID_MS)
    lost = replace(report_branch(again, None), elapsed_ms=BUDGET_MS - _SAID_MS)
    bench.do(lost, actor=_MODEL)
    bench.do(expire(REQUEST), actor=Actor("policy"))


def withdrawn(bench: Harness) -> None:
    """The session hears of its step when it is paused, and the run is cancelled in a turn."""
    asked(bench)
    bench.do(PauseRun("run-1"))
    bench.do(report_branch(STEP, "late"), actor=_MODEL)
    bench.do(ResumeRun("run-1"))
    work(bench, step_message("plan", "resumed:2"), "t1")
    bench.do(CancelRun("run-1"))
    bench.do(tell_end())


def stopped(bench: Harness) -> None:
    """Nothing follows from the end of a run any more."""
    told_end(bench)
    bench.do(StopRecovery("run-1", end_message(), "timed_out"), actor=Actor("policy"))


def aborted(bench: Harness) -> None:
    """A person interrupts the model that works on the end of a run."""
    told_end(bench)
    bench.clock.advance_ms(3_000)
    bench.do(end_turn(end_message(), TURNS[1], "aborted"), actor=_MODEL)


@pytest.mark.parametrize(
    "live", [corrected, missing, interrupted, withdrawn, stopped, aborted], ids=lambda f: f.__name__
)
def test_a_session_is_told_of(
    bench: Harness, live: Callable[[Harness], None], snapshot: SnapshotAssertion
) -> None:
    """What it heard and when, how its turns ended, what came of its answers: in plain words."""
    live(bench)
    found = lines(told(bench))
    assert found == snapshot
    assert "planted" not in "".join(found)


def test_the_time_of_a_session_is_no_waiting(bench: Harness) -> None:
    """What a model worked counts as active; the rest of its run's waiting stays waiting."""
    missing(bench)
    totals = told(bench).totals
    assert (totals.active_ms, totals.waiting_ms) == (3 * _SAID_MS, 3 * 1_500)
    assert (totals.between_ms, totals.excess_ms) == (0, 0)
