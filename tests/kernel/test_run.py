"""A run's life, command by command, on a real file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome, OwnershipLost
from pi_workflows.domain.attempt.boundary import Requeue
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import ClaimRun, FailLaunch, LoseRunner, ReleaseClaim
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import RestartRun, restart_id
from pi_workflows.kernel.order import Chore
from pi_workflows.store.transaction import Transaction
from tests.kernel.harness import CLAIM_MS, Harness, ask, begin, definition, end, finish
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.workflows import WORKFLOWS

GATE = definition(
    {"work": {}, "gate": {"type": "checkpoint", "timeoutMs": 0}},
    [{"from": "work", "to": "gate"}],
)


def status(bench: Harness, run_id: str = "run-1") -> tuple[object, ...]:
    """Return a run's status, pause flag, queue status and queue error."""
    run = next(row for row in bench.dump("runs") if row[0] == run_id)
    queue = next(row for row in bench.dump("run_queue") if row[0] == run_id)
    return run[14], run[15], queue[1], queue[5]


def types(bench: Harness) -> list[object]:
    """Return the types of every event in order."""
    return [row[4] for row in bench.dump("events")]


def test_a_run_goes_from_the_queue_to_its_end(bench: Harness) -> None:
    """Each boundary is one event of the run, and the queue takes over the end in the same group."""
    permit = bench.launch()
    assert status(bench) == ("running", 0, "running", None)
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", {"a": 1}), begin("two"), permit=permit)
    bench.do(end("two", {"b": 2}), permit=permit)
    answer = bench.do(finish({"b": 2}), permit=permit)
    assert status(bench) == ("completed", 0, "done", None)
    assert [event.fact.type for event in answer.events] == [
        "run.completed",
        "effect.reserved",
        "run.queue_settled",
        "effect.applied",
    ]
    assert types(bench)[:8] == [
        "run.queued",
        "lease.claimed",
        "run.started",
        "attempt.started",
        "attempt.settled",
        "attempt.started",
        "attempt.settled",
        "run.completed",
    ]


def test_one_proposal_of_several_boundaries_is_one_presentation_revision(bench: Harness) -> None:
    """Two commands of one order raise the run's revision twice and its view once."""
    permit = bench.launch()
    first = bench.do(begin("one"), permit=permit)
    second = bench.do(end("one", 1), begin("two"), permit=permit)
    assert first.revision is not None
    assert second.revision == first.revision + 2
    assert second.views["run-1"] == first.views["run-1"] + 1


def test_the_route_decides_which_node_may_start(bench: Harness) -> None:
    """A node that the accepted history does not lead to is refused, and changes nothing."""
    permit = bench.launch()
    before = bench.dump("events")
    refused = bench.answer(begin("two"), permit=permit)
    assert (refused.outcome, refused.code) == (Outcome.REJECTED, "routeMismatch")
    assert bench.dump("events") == before


def test_an_order_is_all_or_nothing(bench: Harness) -> None:
    """When the second command of an order is refused, the first leaves no trace."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    before = bench.dump("events")
    refused = bench.answer(end("one", 1), begin("one"), permit=permit)
    assert refused.outcome is Outcome.REJECTED
    assert bench.dump("events") == before


def test_a_run_may_take_no_more_steps_than_its_limit(bench: Harness) -> None:
    """The attempt after the last allowed step is refused."""
    loop = definition({"one": {}}, [{"from": "one", "to": "one"}], max_steps=2)
    permit = bench.launch(workflow=loop)
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), begin("one", visit=2, number=2), permit=permit)
    bench.do(end("one", 2, number=2), permit=permit)
    refused = bench.answer(begin("one", visit=3, number=3), permit=permit)
    assert refused.code == "maxSteps"
    bench.do(finish(outcome="failed"), permit=permit)
    assert status(bench) == ("failed", 0, "failed", "nodeFailed")


def test_a_completed_run_returns_its_final_nodes_output(bench: Harness) -> None:
    """A run cannot end with another value, or before its route ends."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    assert bench.answer(finish(1), permit=permit).code == "attemptOpen"
    bench.do(end("one", 1), permit=permit)
    assert bench.answer(finish(1), permit=permit).code == "routeMismatch"
    bench.do(begin("two"), permit=permit)
    bench.do(end("two", 2), permit=permit)
    assert bench.answer(finish(3), permit=permit).code == "outputMismatch"
    bench.do(finish(2), permit=permit)


def test_a_pause_interrupts_the_attempt_and_a_resume_starts_it_again(bench: Harness) -> None:
    """The visit goes on under the next attempt number; the pause released the claim."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    receipt = bench.do(PauseRun("run-1"))
    assert receipt.receipt is not None
    assert b'"alreadyPaused":false' in receipt.receipt
    assert status(bench) == ("running", 1, "parked", None)
    lost = bench.answer(end("one", 1), permit=permit)
    assert (lost.outcome, lost.code) == (Outcome.CLAIM_LOST, "missingAuthority")
    bench.do(ResumeRun("run-1"))
    assert status(bench) == ("queued", 0, "queued", None)
    permit = bench.relaunch()
    assert bench.answer(begin("one", visit=2, number=2), permit=permit).code == "routeMismatch"
    bench.do(begin("one", visit=1, number=2), permit=permit)
    assert types(bench)[-2:] == ["run.resumed", "attempt.started"]


def test_a_second_pause_changes_nothing(bench: Harness) -> None:
    """Pausing a paused run is accepted and says so."""
    bench.do(bench.start())
    bench.do(PauseRun("run-1"))
    before = types(bench)
    again = bench.do(PauseRun("run-1"))
    assert again.receipt is not None
    assert b'"alreadyPaused":true' in again.receipt
    assert types(bench) == before


def test_a_checkpoint_waits_for_its_answer_in_the_same_run(bench: Harness) -> None:
    """The accepted answer becomes the node's output under the attempt that asked."""
    permit = bench.launch(workflow=GATE)
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    asked = bench.do(ask("gate"), permit=permit)
    assert status(bench) == ("waiting", 0, "parked", None)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    answer = AnswerCheckpoint("run-1", request, 1, "submission-1", "key-1", Blob.json({"go": 1}))
    bench.do(answer)
    assert status(bench) == ("waiting", 0, "queued", None)
    again = bench.do(answer)
    assert again.outcome is Outcome.ADOPTED
    permit = bench.relaunch()
    other = bench.answer(end("gate", {"go": 2}), permit=permit)
    assert other.code == "outputMismatch"
    bench.do(end("gate", {"go": 1}), permit=permit)
    bench.do(finish({"go": 1}), permit=permit)
    assert status(bench) == ("completed", 0, "done", None)


def test_the_first_answer_wins(bench: Harness) -> None:
    """A second answer is a conflict and leaves the first one's value."""
    permit = bench.launch(workflow=GATE)
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    asked = bench.do(ask("gate"), permit=permit)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    bench.do(AnswerCheckpoint("run-1", request, 1, "first", "key-1", Blob.json(1)))
    late = bench.answer(AnswerCheckpoint("run-1", request, 1, "second", "key-2", Blob.json(2)))
    assert (late.outcome, late.code) == (Outcome.CONFLICT, "alreadyAnswered")
    wrong = bench.answer(AnswerCheckpoint("run-1", "request-0", 1, "third", "key-3", Blob.json(2)))
    assert (wrong.outcome, wrong.code) == (Outcome.NOT_FOUND, "requestMissing")


def test_a_paused_run_takes_no_answer(bench: Harness) -> None:
    """Pause and resume raise the question's revision, so that an answer to the old one is stale."""
    permit = bench.launch(workflow=GATE)
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    asked = bench.do(ask("gate"), permit=permit)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    answer = AnswerCheckpoint("run-1", request, 1, "s", "k", Blob.json(1))
    bench.do(PauseRun("run-1"))
    assert bench.answer(answer).code == "runPaused"
    bench.do(ResumeRun("run-1"))
    assert bench.answer(answer).code == "staleRevision"
    bench.do(AnswerCheckpoint("run-1", request, 2, "s", "k", Blob.json(1)))


@pytest.mark.parametrize("ending", ["cancelled", "failed"])
def test_an_attempt_that_lost_its_runner_ends_with_its_run(bench: Harness, ending: str) -> None:
    """Nothing of a run that ended is left unfinished, and what was followed stays as it was."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(PauseRun("run-1"))
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    bench.do(begin("one", number=2), permit=permit)
    bench.do(PauseRun("run-1"))
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    if ending == "cancelled":
        bench.do(CancelRun("run-1"))
    else:
        bench.do(finish(outcome="failed"), permit=permit)
    attempts = [(row[6], row[16] is not None) for row in bench.dump("node_attempts")]
    assert sorted(attempts) == sorted([("interrupted", False), (ending, True)])


@pytest.mark.parametrize("steps", ["queued", "running", "waiting", "paused"])
def test_a_run_can_be_cancelled_wherever_it_stands(bench: Harness, steps: str) -> None:
    """Cancelling ends everything open at once and cannot be undone."""
    if steps == "queued":
        bench.do(bench.start())
    else:
        permit = bench.launch(workflow=GATE)
        bench.do(begin("work"), permit=permit)
        if steps == "waiting":
            bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
            bench.do(ask("gate"), permit=permit)
        if steps == "paused":
            bench.do(PauseRun("run-1"))
    bench.do(CancelRun("run-1"))
    assert status(bench) == ("cancelled", 0, "cancelled", None)
    assert bench.do(CancelRun("run-1")).outcome is Outcome.ADOPTED
    assert bench.answer(ResumeRun("run-1")).code == "runTerminal"
    assert bench.answer(PauseRun("run-1")).code == "runTerminal"


def test_case_04_a_restart_begins_again_and_copies_no_history(bench: Harness) -> None:
    """The child has the parent's input and definition, a lineage, and no steps."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    assert bench.answer(RestartRun("run-1", 4)).code == "runNotTerminal"
    bench.do(CancelRun("run-1"))
    revision = bench.revision()
    assert bench.answer(RestartRun("run-1", revision - 1)).code == "staleRevision"
    answer = bench.do(RestartRun("run-1", revision), expected_revision=revision)
    child = restart_id("run-1", revision)
    assert answer.receipt is not None
    assert child.encode() in answer.receipt
    run = next(row for row in bench.dump("runs") if row[0] == child)
    assert run[3:5] == ("run-1", "run-1")
    assert run[7:10] == ("restart", 1, revision)
    assert len(bench.dump("run_steps")) == 0
    assert bench.do(RestartRun("run-1", revision)).outcome is Outcome.ADOPTED
    assert bench.answer(RestartRun("run-1", revision + 1)).code == "alreadyRestarted"


def test_the_same_start_is_adopted_and_another_one_under_its_id_is_a_conflict(
    bench: Harness,
) -> None:
    """A run ID names one run: definition, source, input, project, mode and session."""
    bench.do(bench.start())
    assert bench.do(bench.start()).outcome is Outcome.ADOPTED
    other = bench.answer(bench.start(run_input={"task": "other"}))
    assert (other.outcome, other.code) == (Outcome.CONFLICT, "runIdTaken")
    elsewhere = bench.answer(bench.start(project_path="/other"))
    assert elsewhere.code == "runIdTaken"


def test_an_unknown_run_is_not_found(bench: Harness) -> None:
    """Every command on a run that does not exist says so."""
    for command in (PauseRun("none"), ResumeRun("none"), CancelRun("none"), ClaimRun("none")):
        answer = bench.answer(command)
        assert (answer.outcome, answer.code) == (Outcome.NOT_FOUND, "runMissing")


def test_a_workflow_that_changed_parks_the_run_until_it_is_resumed(bench: Harness) -> None:
    """Nothing ran, the code says why, and an explicit resume queues the run again."""
    bench.do(bench.start())
    permit = bench.claim()
    bench.do(
        FailLaunch("run-1", Failure("workflowSourceChanged", "sample_workflow.py changed")),
        permit=permit,
    )
    assert status(bench) == ("queued", 0, "parked", "workflowSourceChanged")
    assert types(bench)[-1] == "run.source_changed"
    bench.do(ResumeRun("run-1"))
    assert status(bench) == ("queued", 0, "queued", None)


def test_case_06_three_lost_runners_without_a_step_park_the_run(bench: Harness) -> None:
    """The delays grow, the third loss parks, and a resume clears the count."""
    bench.do(bench.start())
    for delay_ms in (1_000, 5_000):
        permit = bench.claim()
        bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
        assert bench.answer(ClaimRun("run-1")).code == "runNotDue"
        bench.clock.advance_ms(delay_ms)
    permit = bench.claim()
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    assert status(bench) == ("queued", 0, "parked", "runnerNoProgress")
    bench.do(ResumeRun("run-1"))
    permit = bench.claim()
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    assert status(bench) == ("queued", 0, "queued", None)


def test_a_lost_server_never_counts_against_a_run(bench: Harness) -> None:
    """Recovery releases the old claim, requeues the run at once and keeps its count at zero."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    for _ in range(4):
        bench.clock.advance_ms(1)
        bench.store.close()
        bench.reopen()
        bench.do(ReleaseClaim("run-1"))
        bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"))
        assert status(bench) == ("queued", 0, "queued", None)
        bench.relaunch()
    attempts = bench.dump("node_attempts")
    assert [row[6] for row in attempts] == ["interrupted"]


def test_case_09_an_expired_claim_is_never_renewed(bench: Harness) -> None:
    """A runner whose claim ran out writes nothing more."""
    permit = bench.launch()
    bench.clock.advance_ms(60_000)
    lost = bench.answer(begin("one"), permit=permit)
    assert (lost.outcome, lost.code) == (Outcome.CLAIM_LOST, "expired")
    before, now_ms = (bench.dump("events"), bench.dump("leases")), bench.clock.now_ms()

    def renew(tx: Transaction) -> None:
        tx.renew_claim(permit, now_ms + CLAIM_MS, now_ms)

    (refused,) = bench.kernel.commit((Chore(renew),), now_ms)
    assert isinstance(refused, OwnershipLost)
    assert (bench.dump("events"), bench.dump("leases")) == before
    assert status(bench)[0] == "running"


def test_a_stale_revision_is_a_conflict(bench: Harness) -> None:
    """An order that was based on an older revision of its run changes nothing."""
    bench.do(bench.start())
    answer = bench.answer(PauseRun("run-1"), expected_revision=7)
    assert (answer.outcome, answer.code) == (Outcome.CONFLICT, "staleRevision")


def test_a_runner_lost_before_its_requeue_does_not_shorten_a_retrys_delay(bench: Harness) -> None:
    """The run is due again when the retry is, counted from the failure."""
    retried = definition(
        {"one": {"retry": {"maxAttempts": 2, "on": ["failed"], "delayMs": 9_000, "backoff": 1}}}
    )
    permit = bench.launch(workflow=retried)
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), permit=permit)
    bench.clock.advance_ms(2_000)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    bench.clock.advance_ms(6_999)
    assert bench.answer(ClaimRun("run-1")).code == "runNotDue"
    bench.clock.advance_ms(1)
    permit = bench.relaunch()
    bench.do(begin("one", number=2), permit=permit)


def test_an_edge_may_hold_the_run_for_some_time(bench: Harness) -> None:
    """The run waits without a runner, as long as it must and no longer.

    A lost runner changes that neither before it has left nor after the next node has begun.
    """
    permit = bench.launch(workflow=WORKFLOWS["polling"])
    bench.do(begin("look"), permit=permit)
    bench.do(end("look", output={"route": "a"}), begin("rest"), permit=permit)
    bench.do(end("rest"), permit=permit)
    assert bench.answer(Requeue("run-1", 2_999), permit=permit).code == "retryNotDue"
    bench.clock.advance_ms(1_000)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    bench.clock.advance_ms(1_999)
    assert bench.answer(ClaimRun("run-1")).code == "runNotDue"
    bench.clock.advance_ms(1)
    permit = bench.relaunch()
    bench.do(begin("look", number=2, visit=2), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="killed"), permit=permit)
    permit = bench.relaunch()
    assert bench.answer(Requeue("run-1", 3_000), permit=permit).code == "retryNotDue"
    bench.do(begin("look", number=3, visit=2), permit=permit)
    bench.do(end("look", {"route": "a"}, number=3), permit=permit)
    bench.do(begin("rest", number=2, visit=2), permit=permit)
    bench.do(end("rest", number=2), Requeue("run-1", 3_000), permit=permit)
    bench.clock.advance_ms(2_999)
    assert bench.answer(ClaimRun("run-1")).code == "runNotDue"
    bench.clock.advance_ms(1)
    bench.relaunch()
    assert_rebuilds(bench.store)


def test_a_run_that_did_not_complete_says_why(bench: Harness) -> None:
    """Neither a failure nor a timeout ends a run without an error."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="timed_out"), permit=permit)
    for outcome in ("failed", "timed_out"):
        silent = replace(finish(outcome=outcome), failure=None)
        assert bench.answer(silent, permit=permit).code == "errorMissing"
    bench.do(finish(outcome="timed_out"), permit=permit)
    assert status(bench) == ("timed_out", 0, "failed", "nodeFailed")


def test_an_answered_run_that_was_paused_still_waits_for_its_end(bench: Harness) -> None:
    """Pause and resume after the answer lose nothing: the same attempt ends with it."""
    permit = bench.launch(workflow=GATE)
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    asked = bench.do(ask("gate"), permit=permit)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    bench.do(AnswerCheckpoint("run-1", request, 1, "s", "k", Blob.json("yes")))
    bench.relaunch()
    bench.do(PauseRun("run-1"))
    bench.do(ResumeRun("run-1"))
    assert status(bench) == ("waiting", 0, "queued", None)
    permit = bench.relaunch()
    bench.do(end("gate", "yes"), permit=permit)
    bench.do(finish("yes"), permit=permit)
