"""Which writers a run's watchers hear of: all that a command did is one revision of its view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.attempt.boundary import Requeue
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.fact import ViewRef
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import ClaimRun, FailLaunch, LoseRunner, MarkReady, ReleaseClaim
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import RestartRun, restart_id
from pi_workflows.kernel.order import Answer, Chore, Order
from pi_workflows.store import volatile
from pi_workflows.store.records import Permit
from pi_workflows.store.transaction import Transaction
from tests.kernel import conversing, deciding, preferring, queueing, recording
from tests.kernel.harness import (
    CLAIM_MS,
    Harness,
    ask,
    begin,
    definition,
    end,
    finish,
    reserve,
    settle,
    try_effect,
)
from tests.kernel.recovery import recover
from tests.kernel.workflows import WORKFLOWS

RUN: Final = "run-1"
Scene: TypeAlias = Callable[[Harness], Order]

_GATE: Final = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})


def revision_of(bench: Harness, run_id: str = RUN) -> int:
    """Return the presentation revision of a run; 0 before there is one."""
    rows = {row[0]: row[1] for row in bench.dump("viewer_runs")}
    revision = rows.get(run_id, 0)
    assert isinstance(revision, int)
    return revision


# --- how runs come to the command that writes an event -------------------------------------------


def queued(bench: Harness) -> Order:
    """A run is accepted."""
    return bench.order(bench.start())


def claimed(bench: Harness) -> Order:
    """Its turn has come."""
    bench.do(bench.start())
    return bench.order(ClaimRun(RUN))


def started(bench: Harness) -> Order:
    """Its runner is ready."""
    bench.do(bench.start())
    return bench.order(MarkReady(RUN), permit=bench.claim())


def resumed(bench: Harness) -> Order:
    """A later runner is ready."""
    bench.submit(requeued(bench))
    return bench.order(MarkReady(RUN), permit=bench.claim())


def requeued(bench: Harness) -> Order:
    """Its runner is lost."""
    bench.launch()
    return bench.order(LoseRunner(RUN, 0, counted=False, detail="killed"))


def released(bench: Harness) -> Order:
    """Its server is lost."""
    bench.launch()
    bench.store.close()
    bench.reopen()
    return bench.order(ReleaseClaim(RUN))


def _not_loaded(bench: Harness, code: str) -> Order:
    bench.do(bench.start())
    return bench.order(FailLaunch(RUN, Failure(code, "a line")), permit=bench.claim())


def parked(bench: Harness) -> Order:
    """It cannot be loaded."""
    return _not_loaded(bench, "importError")


def source_changed(bench: Harness) -> Order:
    """It is not what it was."""
    return _not_loaded(bench, "workflowSourceChanged")


def no_progress(bench: Harness) -> Order:
    """Its runners die one after the other."""
    bench.do(bench.start())
    lost = LoseRunner(RUN, 0, counted=True, detail="killed")
    for _ in range(2):
        bench.claim()
        bench.do(lost)
        bench.clock.advance_ms(5_000)
    bench.claim()
    return bench.order(lost)


def paused(bench: Harness) -> Order:
    """A person pauses it."""
    bench.launch()
    return bench.order(PauseRun(RUN))


def resume_requested(bench: Harness) -> Order:
    """A person lets it go on."""
    bench.do(bench.start())
    bench.do(PauseRun(RUN))
    return bench.order(ResumeRun(RUN))


def attempt_started(bench: Harness) -> Order:
    """A node begins."""
    return bench.order(begin("one"), permit=bench.launch())


def attempt_settled(bench: Harness) -> Order:
    """A node ends."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    return bench.order(end("one", 1), permit=permit)


def updated(bench: Harness) -> Order:
    """A node tells its progress."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    return bench.order(_update(), permit=permit)


def _update() -> RecordUpdate:
    return RecordUpdate(RUN, begin("one").attempt_id, "progress", "main", Blob.json({"label": "a"}))


def waiting(bench: Harness) -> Order:
    """A checkpoint asks."""
    permit = bench.launch(workflow=_GATE)
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    return bench.order(ask("gate"), permit=permit)


def submitted(bench: Harness) -> Order:
    """A person answers."""
    asked = bench.submit(waiting(bench))
    assert isinstance(asked, Answer)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    return bench.order(AnswerCheckpoint(RUN, request, 1, "s", "k", Blob.json("yes")))


def _ended(bench: Harness, outcome: str) -> Order:
    permit = bench.launch()
    bench.do(begin("one"), end("one", 1), begin("two"), permit=permit)
    fate = "ok" if outcome == "completed" else outcome
    bench.do(end("two", 1, outcome=fate), permit=permit)
    return bench.order(finish(1, outcome=outcome), permit=permit)


def completed(bench: Harness) -> Order:
    """It comes to its end."""
    return _ended(bench, "completed")


def failed(bench: Harness) -> Order:
    """It fails."""
    return _ended(bench, "failed")


def timed_out(bench: Harness) -> Order:
    """Its time runs out."""
    return _ended(bench, "timed_out")


def cancelled(bench: Harness) -> Order:
    """A person cancels it."""
    bench.launch()
    return bench.order(CancelRun(RUN))


def _acting(bench: Harness, workflow: str) -> tuple[Permit, str]:
    """Bring a run to where the effect of its action is reserved."""
    permit = bench.launch(workflow=WORKFLOWS[workflow])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    recovery = "manual" if workflow == "manual" else "idempotent"
    values = bench.do(reserve("deploy", recovery), permit=permit).values
    assert isinstance(values, dict)
    effect_id = values["effectId"]
    assert isinstance(effect_id, str)
    return permit, effect_id


def effect_reserved(bench: Harness) -> Order:
    """An effect gets its name."""
    permit = bench.launch(workflow=WORKFLOWS["slow"])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    return bench.order(reserve("deploy"), permit=permit)


def effect_begun(bench: Harness) -> Order:
    """An effect is tried."""
    permit, effect_id = _acting(bench, "slow")
    return bench.order(try_effect(effect_id), permit=permit)


def _settled(bench: Harness, workflow: str, outcome: str) -> Order:
    permit, effect_id = _acting(bench, workflow)
    bench.do(try_effect(effect_id), permit=permit)
    return bench.order(settle(effect_id, outcome), permit=permit)


def effect_applied(bench: Harness) -> Order:
    """An effect happened."""
    return _settled(bench, "slow", "applied")


def effect_rejected(bench: Harness) -> Order:
    """An effect was refused."""
    return _settled(bench, "slow", "rejected")


def effect_finished(bench: Harness) -> Order:
    """An effect may be tried again."""
    return _settled(bench, "slow", "uncertain")


def effect_ambiguous(bench: Harness) -> Order:
    """Nobody knows of an effect whether it happened."""
    return _settled(bench, "manual", "uncertain")


def effect_scheduled(bench: Harness) -> Order:
    """An effect without a result waits with its run for a retry."""
    permit, effect_id = _acting(bench, "slow")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id, "uncertain"), permit=permit)
    bench.do(end("deploy", outcome="timed_out"), permit=permit)
    return bench.order(Requeue(RUN, 1_000), permit=permit)


def effect_recovered(bench: Harness) -> Order:
    """A person knows."""
    ambiguous = bench.submit(effect_ambiguous(bench))
    assert isinstance(ambiguous, Answer)
    effect_id = next(str(row[0]) for row in bench.dump("effects"))
    return bench.order(ResolveEffect(RUN, effect_id, 1, "retry", "seen"))


def effect_cancelled(bench: Harness) -> Order:
    """An effect is not wanted any more."""
    _acting(bench, "slow")
    return bench.order(CancelRun(RUN))


# Every event of a run is one that its watchers hear of; this says so, one by one.
def segment_opened(bench: Harness) -> Order:
    """Its session begins to be captured."""
    bench.do(bench.start())
    return bench.order(recording.bind())


def segment_completed(bench: Harness) -> Order:
    """Its session was captured."""
    bench.submit(segment_opened(bench))
    return bench.order(recording.complete(0, 0))


def segment_failed(bench: Harness) -> Order:
    """Its session could not be captured."""
    bench.submit(segment_opened(bench))
    return bench.order(recording.failed())


def entries_linked(bench: Harness) -> Order:
    """What was captured for a step is known to be the step's."""
    conversing.asked(bench)
    conversing.working(bench)
    key = ids.attempt_id(RUN, "plan", 1)
    bench.do(recording.bind(key=key))
    bench.do(recording.entries([1, 2], key=key))
    return bench.order(recording.complete(2, 0, key=key))


WRITERS: Final[dict[str, Scene]] = {
    "run.queued": queued,
    "lease.claimed": claimed,
    "lease.released": released,
    "run.started": started,
    "run.resumed": resumed,
    "run.requeued": requeued,
    "run.parked": parked,
    "run.worker_no_progress": no_progress,
    "run.source_changed": source_changed,
    "run.effect_ambiguous": effect_ambiguous,
    "run.waiting": waiting,
    "run.paused": paused,
    "run.resume_requested": resume_requested,
    "run.completed": completed,
    "run.failed": failed,
    "run.timed_out": timed_out,
    "run.cancelled": cancelled,
    "run.queue_settled": cancelled,
    "attempt.started": attempt_started,
    "attempt.settled": attempt_settled,
    "update.recorded": updated,
    "request.submitted": submitted,
    "effect.reserved": effect_reserved,
    "effect.attempt_started": effect_begun,
    "effect.attempt_finished": effect_finished,
    "effect.applied": effect_applied,
    "effect.rejected": effect_rejected,
    "effect.ambiguous": effect_ambiguous,
    "effect.cancelled": effect_cancelled,
    "effect.recovered": effect_recovered,
    "effect.retry_scheduled": effect_scheduled,
    "segment.opened": segment_opened,
    "segment.completed": segment_completed,
    "segment.failed": segment_failed,
    "attempt.entries_linked": entries_linked,
    **conversing.SCENES,
    **deciding.SCENES,
    **preferring.SCENES,
    **queueing.SCENES,
}


def test_no_kind_of_event_is_left_out() -> None:
    """A new kind of event says here how its run's watchers hear of it."""
    assert set(WRITERS) == set(EVENTS)


@pytest.mark.parametrize("event_type", WRITERS)
def test_what_is_written_is_one_revision(bench: Harness, event_type: str) -> None:
    """Each event advances its run's view, and all events of a command together by one."""
    order = WRITERS[event_type](bench)
    before = revision_of(bench)
    answer = bench.submit(order)
    assert isinstance(answer, Answer)
    # A refused answer to a decision is kept.
    assert answer.error is None or event_type == "decision.submitted"
    assert event_type in types_of(answer)
    views = [view for _, view in commands_of(answer)]
    # Only a run that ended with nothing left to wait for takes a second command with it.
    assert len(views) == 1 + ("run.queue_settled" in types_of(answer))
    assert views == [ViewRef(run_id=RUN, revision=before + each + 1) for each in range(len(views))]
    assert revision_of(bench) == before + len(views)
    told = {row[1] for row in bench.dump("viewer_deltas") if row[0] == RUN}
    assert told == set(range(2, before + len(views) + 1))


def types_of(answer: Answer) -> set[str]:
    """Return the kinds of an answer's events."""
    return {event.fact.type for event in answer.events}


def commands_of(answer: Answer) -> list[tuple[str, ViewRef | None]]:
    """Return the commands of an answer's events, in order, each with the revision that it made."""
    found: list[tuple[str, ViewRef | None]] = []
    for event in answer.events:
        assert event.fact.command is not None
        command = (event.fact.command.id, event.fact.view)
        if command not in found:
            found.append(command)
    assert len({command_id for command_id, _ in found}) == len(found)
    return found


def test_a_proposal_of_many_boundaries_is_one_revision(bench: Harness) -> None:
    """A runner that ran ahead is heard of once, with all that it did."""
    permit = bench.launch()
    before = revision_of(bench)
    answer = bench.do(
        begin("one"),
        _update(),
        _update(),
        end("one", 1),
        begin("two"),
        end("two", 2),
        permit=permit,
    )
    assert len(answer.events) == 6
    assert answer.views == {RUN: before + 1} == {RUN: revision_of(bench)}
    last = bench.do(finish(2), permit=permit)
    assert (len(commands_of(last)), revision_of(bench)) == (2, before + 3)


def test_commands_of_effects_only_are_revisions_of_their_run(bench: Harness) -> None:
    """What touches no row of the run itself is told to its watchers all the same, once each."""
    permit, effect_id = _acting(bench, "slow")
    for number in (1, 2):
        for command in (try_effect(effect_id, number), settle(effect_id, "uncertain", number)):
            before, run_revision = revision_of(bench), bench.revision()
            answer = bench.do(command, permit=permit)
            assert all(kind.startswith("effect.") for kind in types_of(answer))
            assert (revision_of(bench), bench.revision()) == (before + 1, run_revision)


def test_a_restart_is_heard_of_by_the_child_only(bench: Harness) -> None:
    """A new run has a view of its own; that of its parent does not change."""
    bench.do(bench.start())
    bench.do(CancelRun(RUN))
    before, run_revision = revision_of(bench), bench.revision()
    answer = bench.do(RestartRun(RUN, run_revision))
    child = restart_id(RUN, run_revision)
    assert answer.views == {child: 1}
    assert (revision_of(bench), revision_of(bench, child)) == (before, 1)


def test_who_changes_nothing_makes_no_revision(bench: Harness) -> None:
    """Refused, adopted and repeated commands, renewals and samples are no news."""
    permit = bench.launch()
    identity = bench.client("key")
    bench.do(begin("one"), permit=permit)
    bench.do(PauseRun("run-1"), identity=identity)
    before, events = revision_of(bench), len(bench.dump("events"))
    bench.do(PauseRun(RUN), identity=identity)
    bench.do(PauseRun(RUN))
    assert bench.answer(begin("two"), permit=permit).error is not None
    assert bench.answer(FailLaunch(RUN, Failure("importError", "a line"))).error is not None
    now_ms, attempt_id = bench.clock.now_ms(), begin("one").attempt_id

    def keep(tx: Transaction) -> None:
        tx.renew_claim(permit, now_ms + CLAIM_MS, now_ms)
        volatile.sample_active_time(tx, attempt_id, 1, observed_at_ms=now_ms, elapsed_ms=7)

    bench.kernel.commit((Chore(keep),), now_ms)
    assert (revision_of(bench), len(bench.dump("events"))) == (before, events)


def test_a_recovery_is_told_command_by_command(bench: Harness) -> None:
    """What a starting server finds out about runs is news to those who watched them before."""
    bench.launch()
    bench.do(bench.start("run-2"))
    before = revision_of(bench), revision_of(bench, "run-2")
    bench.store.crash()
    answers = recover(bench)
    assert [answer.views for answer in answers] == [{RUN: before[0] + 1}, {RUN: before[0] + 2}]
    assert revision_of(bench, "run-2") == before[1]
