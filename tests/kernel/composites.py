"""Runs brought to the command that changes many things at once (the state contract, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.attempt.notice import Notify
from pi_workflows.domain.decision.resolution import AnswerDecision
from pi_workflows.domain.fact import Command
from pi_workflows.domain.message.recovery import StopRecovery
from pi_workflows.domain.message.turn import SuspendClock
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import LoseRunner, ReleaseClaim
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.kernel.order import Order, WorkerIdentity
from pi_workflows.store.records import Permit
from tests.kernel import deciding, preferring
from tests.kernel.conversing import REQUEST, RUN, STEP, asked, reminder, told_end, working
from tests.kernel.harness import (
    SESSION,
    Harness,
    ask,
    ask_text,
    begin,
    definition,
    end,
    end_message,
    end_turn,
    expire,
    finish,
    judge,
    report_branch,
    request_of,
    reserve,
    start_turn,
    step_message,
    submit,
    tell_end,
    text,
    try_effect,
)
from tests.kernel.queueing import queue
from tests.kernel.workflows import TALK, WORKFLOWS, speaker

_GATE: Final = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})
_SPEECH: Final = definition({"say": speaker(80)})


def _sent(bench: Harness, *commands: Command, permit: Permit | None = None) -> Order:
    """Return commands as a client or a runner sends them: remembered under their names."""
    if permit is None:
        return bench.order(*commands, identity=bench.client(type(commands[0]).__name__))
    bench.spawn("worker-1", permit)
    return bench.order(
        *commands, permit=permit, identity=WorkerIdentity("worker-1", "1", b"f" * 32)
    )


def _busy(bench: Harness) -> None:
    """Bring a run to where everything that it can have is open.

    A turn with an active interval, an answer that is being judged, a reminder, and a follow-up.
    """
    asked(bench)
    bench.do(queue("a"))
    working(bench)
    bench.do(end_turn(STEP))
    bench.do(report_branch(reminder("turn-1"), "entry-2"), start_turn(reminder("turn-1"), "turn-2"))
    bench.do(submit(REQUEST))


def _cancelled(bench: Harness) -> Order:
    _busy(bench)
    return _sent(bench, CancelRun(RUN))


def _cancelled_untold(bench: Harness) -> Order:
    asked(bench)
    return _sent(bench, CancelRun(RUN))


def _cancelled_decision(bench: Harness) -> Order:
    deciding.asked(bench, deciding.DEFAULT)
    return _sent(bench, CancelRun(RUN))


def _acting(bench: Harness, workflow: str) -> Permit:
    permit = bench.launch(workflow=WORKFLOWS[workflow])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    recovery = "manual" if workflow == "manual" else "idempotent"
    values = bench.do(reserve("deploy", recovery), permit=permit).values
    assert isinstance(values, dict)
    bench.do(try_effect(str(values["effectId"])), permit=permit)
    return permit


def _cancelled_effect(bench: Harness) -> Order:
    _acting(bench, "manual")
    return _sent(bench, CancelRun(RUN))


def _completed(bench: Harness) -> Order:
    permit = bench.launch(session=SESSION)
    bench.do(queue("a"))
    bench.do(begin("one"), end("one", 1), begin("two"), end("two", 2), permit=permit)
    return _sent(bench, finish(2), permit=permit)


def _failed(bench: Harness) -> Order:
    permit = bench.launch(session=SESSION)
    bench.do(queue("a"))
    bench.do(begin("one"), permit=permit)
    return _sent(bench, end("one", outcome="failed"), finish(outcome="failed"), permit=permit)


def _paused(bench: Harness) -> Order:
    asked(bench)
    return _sent(bench, PauseRun(RUN))


def _paused_at_work(bench: Harness) -> Order:
    _busy(bench)
    return _sent(bench, PauseRun(RUN, elapsed_ms=7))


def _paused_effect(bench: Harness) -> Order:
    _acting(bench, "slow")
    return _sent(bench, PauseRun(RUN))


def _resumed(bench: Harness) -> Order:
    bench.submit(_paused(bench))
    return _sent(bench, ResumeRun(RUN))


def _accepted(bench: Harness) -> Order:
    _busy(bench)
    return _sent(bench, judge(REQUEST))


def _accepted_untold(bench: Harness) -> Order:
    asked(bench)
    bench.do(submit(REQUEST))
    return _sent(bench, judge(REQUEST))


def _accepted_text(bench: Harness) -> Order:
    permit = bench.launch(workflow=_SPEECH, session=SESSION)
    bench.do(begin("say", node_type="agent"), ask_text("say", 80), permit=permit)
    told = step_message("say")
    bench.do(report_branch(told, "entry-1"), start_turn(told))
    return _sent(bench, text(request_of("say")))


def _aborted(bench: Harness) -> Order:
    _busy(bench)
    return _sent(bench, end_turn(reminder("turn-1"), "turn-2", "aborted", elapsed_ms=7))


def _given_up(bench: Harness) -> Order:
    asked(bench)
    message = STEP
    for turn in ("turn-1", "turn-2"):
        working(bench, message, turn)
        bench.do(end_turn(message, turn))
        message = reminder(turn)
    working(bench, message, "turn-3")
    return _sent(bench, end_turn(message, "turn-3"))


def _expired(bench: Harness) -> Order:
    _busy(bench)
    return _sent(bench, expire(REQUEST))


def _lost_branch(bench: Harness) -> Order:
    asked(bench)
    working(bench)
    return _sent(bench, report_branch(STEP))


def _answered(bench: Harness) -> Order:
    permit = bench.launch(workflow=_GATE)
    bench.do(begin("gate", node_type="checkpoint"), ask("gate"), permit=permit)
    return _sent(bench, AnswerCheckpoint(RUN, request_of("gate"), 1, "s", "k", Blob.json("yes")))


def _taken(bench: Harness) -> Order:
    bench.submit(_answered(bench))
    return _sent(bench, end("gate", "yes"), finish("yes"), permit=bench.relaunch())


def _asked(bench: Harness) -> Order:
    permit = bench.launch(workflow=TALK, session=SESSION)
    return _sent(bench, begin("plan", node_type="agent"), permit=permit)


def _notified(bench: Harness) -> Order:
    says = definition({"say": {"type": "notify", "notifyKind": "progress"}})
    permit = bench.launch(workflow=says, session=SESSION)
    bench.do(begin("say", node_type="notify"), permit=permit)
    told = Notify(RUN, ids.attempt_id(RUN, "say", 1), Blob.json("half done"), "progress", 5)
    return _sent(bench, told, permit=permit)


def _decided(bench: Harness) -> Order:
    deciding.asked(bench, deciding.DEFAULT)
    given: AnswerDecision = deciding.given("replan", "smaller")
    return replace(_sent(bench, given), actor=deciding.PERSON)


def _decided_by_policy(bench: Harness) -> Order:
    deciding.asked(bench, deciding.DEFAULT)
    bench.clock.advance_ms(600_000)
    return bench.order(deciding.closing(), actor=deciding.POLICY)


def _decision_expired(bench: Harness) -> Order:
    deciding.asked(bench, deciding.EXPIRY)
    bench.clock.advance_ms(600_000)
    return bench.order(deciding.closing(), actor=deciding.POLICY)


def _settings_changed(bench: Harness) -> Order:
    bench.submit(preferring.opened(bench))
    return _sent(bench, preferring.change(1))


def _settings_bound(bench: Harness) -> Order:
    permit = bench.launch(workflow=preferring.MERGED)
    opens = preferring.open_scope()
    return _sent(bench, opens, preferring.begin_bound("choose"), permit=permit)


def _followed(bench: Harness) -> Order:
    bench.launch(session=SESSION)
    return _sent(bench, queue("a"))


def _restarted(bench: Harness) -> Order:
    told_end(bench)
    return _sent(bench, RestartRun(RUN, bench.revision(), end_message()))


def _recovery_stopped(bench: Harness) -> Order:
    told_end(bench)
    return _sent(bench, StopRecovery(RUN, end_message(), "interrupted"))


def _told_end(bench: Harness) -> Order:
    bench.submit(_completed(bench))
    return bench.order(tell_end())


def _new_server(bench: Harness) -> None:
    bench.store.close()
    bench.reopen()


def _claim_released(bench: Harness) -> Order:
    _acting(bench, "slow")
    _new_server(bench)
    return bench.order(ReleaseClaim(RUN))


def _recovered(workflow: str) -> Callable[[Harness], Order]:
    def scene(bench: Harness) -> Order:
        _acting(bench, workflow)
        _new_server(bench)
        bench.do(ReleaseClaim(RUN))
        return bench.order(LoseRunner(RUN, 0, counted=False, detail="server lost"))

    return scene


def _clock_closed(bench: Harness) -> Order:
    _busy(bench)
    _new_server(bench)
    return bench.order(SuspendClock(RUN, ids.attempt_id(RUN, "plan", 1), 0, "serverLost"))


COMPOSITES: Final[dict[str, Callable[[Harness], Order]]] = {
    "terminal: cancelled at work": _cancelled,
    "terminal: cancelled before its session knew": _cancelled_untold,
    "terminal: cancelled with a decision": _cancelled_decision,
    "terminal: cancelled with an effect": _cancelled_effect,
    "terminal: completed": _completed,
    "terminal: failed": _failed,
    "terminal: told": _told_end,
    "pause before its session knew": _paused,
    "pause at work": _paused_at_work,
    "pause with an effect": _paused_effect,
    "resume of a step": _resumed,
    "accept at work": _accepted,
    "accept before its session knew": _accepted_untold,
    "accept of text": _accepted_text,
    "aborted turn end": _aborted,
    "missing submission": _given_up,
    "interaction timeout": _expired,
    "lost branch": _lost_branch,
    "checkpoint answer": _answered,
    "checkpoint answer taken": _taken,
    "step begun": _asked,
    "notify node": _notified,
    "decision by a person": _decided,
    "decision by its policy": _decided_by_policy,
    "decision expired": _decision_expired,
    "settings change": _settings_changed,
    "settings bound": _settings_bound,
    "follow-up queue": _followed,
    "recovery restart": _restarted,
    "recovery stopped": _recovery_stopped,
    "startup: claim released": _claim_released,
    "startup: idempotent effect pending": _recovered("slow"),
    "startup: manual effect ambiguous": _recovered("manual"),
    "startup: interval closed": _clock_closed,
}
"""Scenes that bring a run to a composite transaction, and return its order."""
