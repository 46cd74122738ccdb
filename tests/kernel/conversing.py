"""A run that talks with a session's model, brought to each of the things that can happen there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pi_workflows.base import ids
from pi_workflows.domain.attempt.boundary import FinishAttempt
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message.recovery import StopRecovery
from pi_workflows.domain.run.control import PauseRun
from pi_workflows.kernel.order import Order
from pi_workflows.store.records import Permit
from tests.kernel.harness import (
    SESSION,
    Harness,
    ask_agent,
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
)
from tests.kernel.workflows import TALK

RUN: Final = "run-1"
STEP: Final = step_message("plan")
REQUEST: Final = request_of("plan")
BUDGET_MS: Final = 900_000
LATE: Final = Failure("timedOut", f"no answer within {BUDGET_MS} ms of active time")
TURNS: Final = ("turn-1", "turn-2", "turn-3")


def begun(bench: Harness) -> Permit:
    """Bring a run of a session to where its first step begins."""
    permit = bench.launch(workflow=TALK, session=SESSION)
    bench.do(begin("plan", node_type="agent"), permit=permit)
    return permit


def asked(bench: Harness) -> None:
    """Bring it to where its session has to be told its step."""
    bench.do(ask_agent("plan"), permit=begun(bench))


def working(bench: Harness, message: str = STEP, turn: str = TURNS[0]) -> None:
    """Tell a session a message, for which its model begins a turn."""
    bench.do(report_branch(message, f"entry-{turn}"))
    bench.do(start_turn(message, turn))


def reminder(turn: str) -> str:
    """Return the message that reminds a session after a turn."""
    return step_message("plan", f"reminder:{turn}")


def unanswered(outcome: str = "timed_out", failure: Failure = LATE) -> FinishAttempt:
    """Return the command with which a runner ends the step that nobody answered."""
    return FinishAttempt(
        RUN,
        ids.attempt_id(RUN, "plan", 1),
        outcome,  # type: ignore[arg-type] # tests pass the outcomes of closed questions
        failure=failure,
    )


def told_end(bench: Harness) -> None:
    """Bring a run to where its session works on its end."""
    asked(bench)
    working(bench)
    bench.clock.advance_ms(BUDGET_MS)
    bench.do(expire(REQUEST), end_turn(STEP))
    permit = bench.relaunch()
    bench.do(unanswered(), begin("late"), end("late", outcome="failed"), permit=permit)
    bench.do(finish(outcome="failed"), permit=permit)
    bench.do(tell_end())
    working(bench, end_message(), TURNS[1])


# --- the command that writes each event ----------------------------------------------------------


def created(bench: Harness) -> Order:
    """Its step asks."""
    permit = begun(bench)
    return bench.order(ask_agent("plan"), permit=permit)


def sent(bench: Harness) -> Order:
    """Its session's branch holds the step."""
    asked(bench)
    return bench.order(report_branch(STEP, "entry-1"))


def withdrawn(bench: Harness) -> Order:
    """It is paused before its session heard of the step."""
    asked(bench)
    return bench.order(PauseRun(RUN))


def turn_started(bench: Harness) -> Order:
    """Its session's model begins to work."""
    asked(bench)
    bench.do(report_branch(STEP, "entry-1"))
    return bench.order(start_turn(STEP))


def turn_ended(bench: Harness) -> Order:
    """Its session's model stops without an answer, of which it is reminded."""
    asked(bench)
    working(bench)
    return bench.order(end_turn(STEP, elapsed_ms=7))


def judged(bench: Harness) -> Order:
    """What its session submitted is good."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST))
    return bench.order(judge(REQUEST))


def given_up(bench: Harness) -> Order:
    """Its session's model stops for the third time without an answer."""
    asked(bench)
    message = STEP
    for turn in TURNS[:-1]:
        working(bench, message, turn)
        bench.do(end_turn(message, turn))
        message = reminder(turn)
    working(bench, message, TURNS[-1])
    return bench.order(end_turn(message, TURNS[-1]))


def expired(bench: Harness) -> Order:
    """Its session's model has worked on the step for as long as it may."""
    asked(bench)
    working(bench)
    return bench.order(expire(REQUEST))


def stopped(bench: Harness) -> Order:
    """Nothing more may be launched from its end."""
    told_end(bench)
    return bench.order(StopRecovery(RUN, end_message(), "interrupted"))


SCENES: Final[dict[str, Callable[[Harness], Order]]] = {
    "message.created": created,
    "message.sent": sent,
    "message.cancelled": withdrawn,
    "message.recovery_stopped": stopped,
    "turn.started": turn_started,
    "attempt.interval_opened": turn_started,
    "turn.ended": turn_ended,
    "attempt.interval_closed": turn_ended,
    "request.validated": judged,
    "request.cancelled": given_up,
    "run.interaction_timeout_started": expired,
}
