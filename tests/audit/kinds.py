"""The kinds of runs that an installation comes to have: a life for each, told step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from pi_workflows.domain.attempt.boundary import Requeue
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import ClaimRun, FailLaunch
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.state import run_state
from tests.audit.conversations import abandoned, conversed, talking
from tests.audit.lives import Life, Steps
from tests.kernel.moves import persons_move, runner_move

Script: TypeAlias = Callable[[Life], Steps]

NOW: Final = 0
_WALK_STEPS: Final = 45


def answered(life: Life) -> Steps:
    """Complete after two answers, a loop, a lost server, a lost effect and a retried one."""
    life.start("shipping", title="Ship it")
    yield NOW
    life.boot()
    life.runner(life.begin("plan"))
    life.runner(life.update("plan"), life.update("plan", "test"))
    yield NOW
    if life.permit is not None:  # Of the first run, the server was lost meanwhile.
        life.lose()
        yield life.bench.clock.now_ms() + 1_000
    life.boot()
    life.runner(life.begin("plan", is_again=True))
    life.runner(life.update("plan"))
    life.sample("plan", 700)
    life.runner(life.end("plan"), life.begin("deploy"))
    life.runner(life.reserve("deploy"), life.attempt_effect("deploy"))
    yield NOW
    life.runner(life.settle("deploy"))
    life.runner(life.end("deploy"), life.begin("gate"))
    life.runner(life.ask("gate"))
    yield NOW
    life.answer({"route": "b"})
    yield NOW
    life.boot()
    life.runner(life.end("gate", route="b"), life.begin("plan"))
    life.runner(life.end("plan"), life.begin("deploy"))
    life.runner(life.reserve("deploy"), life.attempt_effect("deploy"))
    life.sample("deploy", 1_200)
    yield from _confirmed(life)
    life.runner(life.ask("gate"))
    yield NOW
    life.answer({"route": "a"})
    life.boot()
    life.runner(life.end("gate", route="a"), life.begin("publish"))
    yield NOW
    life.runner(life.reserve("publish"), life.attempt_effect("publish"))
    life.runner(life.settle("publish", "rejected"))
    yield NOW
    life.runner(life.end("publish", "failed"), life.begin("publish", is_again=True))
    life.runner(life.attempt_effect("publish", 2))
    life.runner(life.settle("publish", number=2))
    life.runner(life.end("publish", route="done"))
    yield NOW
    life.finish("publish", "completed")
    life.client(PauseRun(life.run_id), code="runTerminal")


def _confirmed(life: Life) -> Steps:
    """Lose a manual effect, hear that it happened, and reach the gate behind it."""
    yield NOW
    life.lose()
    yield NOW
    life.client(ResumeRun(life.run_id), code="effectAmbiguous")
    life.resolve("deploy", "confirm")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy", is_again=True))
    life.runner(life.reserve("deploy"))
    life.runner(life.end("deploy"), life.begin("gate"))


def failed(life: Life) -> Steps:
    """Fail behind a routed failure: an effect is refused, tried again later, and left undone."""
    life.start("slow")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy"))
    life.finish("deploy", "failed", code="attemptOpen")
    life.runner(life.reserve("deploy"), life.attempt_effect("deploy"))
    yield NOW
    life.runner(life.settle("deploy", "rejected"))
    life.runner(life.end("deploy", "failed"))
    life.runner(Requeue(life.run_id, 1_000))
    yield life.bench.clock.now_ms() + 1_000
    life.boot()
    life.runner(life.begin("deploy", is_again=True), life.attempt_effect("deploy", 2))
    yield NOW
    life.runner(life.settle("deploy", "uncertain", 2))
    life.runner(life.end("deploy", "timed_out"), life.begin("late"))
    life.runner(life.update("late"))
    yield NOW
    life.runner(life.end("late", "failed"))
    life.finish("late", "failed")


def timed_out(life: Life) -> Steps:
    """Time out behind a manual effect that a person found undone."""
    life.start("manual")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy"))
    life.runner(life.reserve("deploy"), life.attempt_effect("deploy"))
    yield NOW
    life.lose(is_counted=False)
    yield NOW
    life.resolve("deploy", "reject")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy", is_again=True), life.reserve("deploy"))
    life.runner(life.end("deploy", "failed"), life.begin("late"))
    yield NOW
    life.runner(life.end("late", "timed_out"))
    life.finish("late", "timed_out")


def waiting(life: Life) -> Steps:
    """Wait for an answer that belongs to a session, with a question that was asked again."""
    life.start("gate", session=f"session-{life.run_id}")
    yield NOW
    life.boot()
    life.runner(life.begin("work"))
    life.runner(life.update("work"))
    yield NOW
    life.runner(life.end("work"), life.begin("gate"))
    life.runner(life.ask("gate"))
    yield NOW
    life.client(PauseRun(life.run_id))
    yield NOW
    life.client(ResumeRun(life.run_id))


def paused(life: Life) -> Steps:
    """Stand still between two nodes, behind a lost runner and a retry."""
    life.start("delayed")
    yield NOW
    life.boot()
    life.runner(life.begin("one"))
    life.runner(life.end("one", "failed"))
    life.runner(Requeue(life.run_id, 2_000))
    yield life.bench.clock.now_ms() + 2_000
    life.boot()
    life.runner(life.begin("one", is_again=True))
    life.lose()
    yield life.bench.clock.now_ms() + 1_000
    life.boot()
    life.runner(life.begin("one", is_again=True))
    yield NOW
    life.runner(life.end("one"))
    life.client(PauseRun(life.run_id))
    life.client(PauseRun(life.run_id))


def paused_in_effect(life: Life) -> Steps:
    """Be told to pause while a manual effect is under way."""
    life.start("manual")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy"))
    life.runner(life.reserve("deploy"), life.attempt_effect("deploy"))
    life.sample("deploy", 300)
    yield NOW
    life.client(PauseRun(life.run_id))


def cancelled_queued(life: Life) -> Steps:
    """Be cancelled before any runner had it."""
    life.start("gate")
    yield NOW
    life.client(CancelRun(life.run_id))


def cancelled_running(life: Life) -> Steps:
    """Be cancelled while a node of a second visit works."""
    life.start("loop", session=f"session-{life.run_id}")
    yield NOW
    life.boot()
    life.runner(life.begin("one"))
    life.runner(life.end("one", route="a"), life.begin("two"))
    yield NOW
    life.runner(life.end("two"), life.begin("one"))
    life.runner(life.update("one"))
    yield NOW
    life.client(CancelRun(life.run_id))


def cancelled_waiting(life: Life) -> Steps:
    """Restart a run that was cancelled, and be cancelled with a question open."""
    parent = life.ancestor("cancelledQueued")
    yield from cancelled_queued(parent)
    yield NOW
    life.restart(parent)
    yield NOW
    life.boot()
    life.runner(life.begin("work"))
    life.runner(life.end("work"), life.begin("gate"))
    life.runner(life.ask("gate"))
    yield NOW
    life.client(CancelRun(life.run_id))


def no_progress(life: Life) -> Steps:
    """Lose runner after runner without a step."""
    life.start("line")
    for delay_ms in (1_000, 5_000, 0):
        yield NOW
        life.boot()
        life.runner(life.begin("one", is_again=delay_ms != 1_000))
        yield NOW
        life.lose()
        yield life.bench.clock.now_ms() + delay_ms


def source_changed(life: Life) -> Steps:
    """Restart the restart of a run, and find that its files have changed."""
    parent = life.ancestor("cancelledWaiting")
    yield from cancelled_waiting(parent)
    yield NOW
    life.restart(parent)
    yield NOW
    life.system(ClaimRun(life.run_id), "run.claim")
    failure = Failure("workflowSourceChanged", "/projects/shop/gate_workflow.py has changed")
    life.system(FailLaunch(life.run_id, failure), "run.launch_failed")


def ambiguous(life: Life) -> Steps:
    """Lose a manual effect, be told to try again, and lose it again."""
    life.start("manual")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy"))
    life.runner(life.reserve("deploy"), life.attempt_effect("deploy"))
    yield NOW
    life.lose()
    yield NOW
    life.resolve("deploy", "retry")
    yield NOW
    life.boot()
    life.runner(life.begin("deploy", is_again=True), life.reserve("deploy"))
    life.runner(life.attempt_effect("deploy", 2))
    yield NOW
    life.runner(life.settle("deploy", "uncertain", 2))


def completed(life: Life) -> Steps:
    """Go through without a word."""
    life.start("line", title="Check the shop")
    yield NOW
    life.boot()
    life.runner(life.begin("one"))
    yield NOW
    life.runner(life.end("one"), life.begin("two"))
    life.runner(life.update("two"))
    yield NOW
    life.runner(life.end("two"))
    life.finish("two", "completed")


def requeued(life: Life) -> Steps:
    """Wait for capacity behind a lost runner."""
    life.start("line")
    yield NOW
    life.boot()
    life.runner(life.begin("one"))
    yield NOW
    life.lose()


def cancelled_in_effect(life: Life) -> Steps:
    """Be cancelled while a manual effect is under way, which then nobody knows about."""
    yield from paused_in_effect(life)
    yield NOW
    life.client(CancelRun(life.run_id))


def walked(life: Life) -> Steps:
    """Do whatever is sound, with interference from everybody."""
    life.start(life.chance.choice(("loop", "retried", "delayed", "gate", "idempotent", "mixed")))
    for number in range(_WALK_STEPS):
        yield NOW
        now_ms = life.bench.clock.now_ms()
        with life.bench.store.snapshot() as read:
            state = run_state(read, life.run_id)
            due = runner_move(read, life.run_id, now_ms, life.chance.choice)
            name = f"walk-{number}-{life.run_id}"
            wanted = persons_move(read, life.run_id, name, life.chance.choice, now_ms)
        if state.is_terminal:
            return
        fate = life.chance.random()
        if fate < 0.03:
            life.client(PauseRun(life.run_id))
        elif fate < 0.05 and number > 10:
            life.client(CancelRun(life.run_id))
        elif fate < 0.09 and life.permit is not None:
            life.lose()
        elif isinstance(due, ClaimRun):
            life.boot()
        elif due is not None:
            life.runner(due)
        elif wanted is not None:
            life.client(wanted)
        else:
            yield state.available_at


# What an audit has to tell apart; fifteen runs hold all of it, with their ancestors.
KINDS: Final[dict[str, Script]] = {
    "answered": answered,
    "failed": failed,
    "timedOut": timed_out,
    "waiting": waiting,
    "paused": paused,
    "pausedInEffect": paused_in_effect,
    "cancelledRunning": cancelled_running,
    "noProgress": no_progress,
    "ambiguous": ambiguous,
    "sourceChanged": source_changed,
    "conversed": conversed,
    "abandoned": abandoned,
    "talking": talking,
}
MORE_KINDS: Final[dict[str, Script]] = {
    "completed": completed,
    "requeued": requeued,
    "cancelledInEffect": cancelled_in_effect,
    "walked": walked,
}
ALL_KINDS: Final = {**KINDS, **MORE_KINDS}
