"""An effect's life: reserved, tried, settled, lost, recovered."""

from __future__ import annotations

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome
from pi_workflows.definition.snapshot import SHELL_RESULT_MODEL
from pi_workflows.domain.attempt.boundary import Requeue
from pi_workflows.domain.effect.application import SettleEffect
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import ClaimRun, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.store.records import Permit
from tests.kernel.harness import (
    Harness,
    begin,
    definition,
    end,
    finish,
    reserve,
    settle,
    try_effect,
)
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.recovery import recover


def action(recovery: str, *, retry: bool = False) -> dict[str, canonical.Json]:
    """Return a deploying action with a policy."""
    node: dict[str, canonical.Json] = {
        "type": "action",
        "actionForm": "function",
        "effect": {"type": "deploy", "recovery": recovery},
    }
    if retry:
        node["retry"] = {"maxAttempts": 2, "on": ["failed"], "delayMs": 0, "backoff": 1}
    return node


IDEMPOTENT = definition({"deploy": action("idempotent")})
RETRIED = definition({"deploy": action("idempotent", retry=True)})
MANUAL = definition({"deploy": action("manual")})


def reserved(bench: Harness, permit: Permit, recovery: str) -> str:
    """Begin the deploying node and reserve its effect; return the effect's ID."""
    bench.do(begin("deploy", node_type="action"), permit=permit)
    answer = bench.do(reserve("deploy", recovery), permit=permit)
    assert isinstance(answer.values, dict)
    assert (answer.values["status"], answer.values["attemptCount"]) == ("pending", 0)
    effect_id = answer.values["effectId"]
    assert isinstance(effect_id, str)
    return effect_id


def effect(bench: Harness) -> tuple[object, ...]:
    """Return the status, try count and settlement of the action's effect."""
    row = next(row for row in bench.dump("effects") if row[4] == "deploy")
    return row[8], row[9], row[16] is not None


def tries(bench: Harness) -> list[object]:
    """Return the outcome of each try."""
    return [row[6] for row in bench.dump("effect_attempts")]


def run(bench: Harness) -> tuple[object, ...]:
    """Return the run's status, its queue status and queue error."""
    queue = bench.dump("run_queue")[0]
    return bench.dump("runs")[0][14], queue[1], queue[5]


def test_an_applied_effect_is_adopted_not_repeated(bench: Harness) -> None:
    """A second reservation by the same visit gets the stored result and begins nothing."""
    permit = bench.launch(workflow=IDEMPOTENT)
    effect_id = reserved(bench, permit, "idempotent")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id), permit=permit)
    assert effect(bench) == ("applied", 1, True)
    again = bench.do(reserve("deploy"), permit=permit)
    assert again.outcome is Outcome.ADOPTED
    assert isinstance(again.values, dict)
    assert again.values["status"] == "applied"
    assert "result" in again.values
    assert bench.answer(try_effect(effect_id, 2), permit=permit).code == "effectNotPending"
    bench.do(end("deploy", {"id": 7}), permit=permit)
    bench.do(finish({"id": 7}), permit=permit)


def test_another_request_under_the_same_key_is_a_conflict(bench: Harness) -> None:
    """One visit has one effect: what it asks for cannot change between tries."""
    permit = bench.launch(workflow=IDEMPOTENT)
    reserved(bench, permit, "idempotent")
    answer = bench.answer(reserve("deploy", request="something else"), permit=permit)
    assert (answer.outcome, answer.code) == (Outcome.CONFLICT, "effectConflict")


def test_an_effect_that_the_node_does_not_declare_is_refused(bench: Harness) -> None:
    """Neither type nor recovery may differ from the definition."""
    permit = bench.launch(workflow=IDEMPOTENT)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    assert bench.answer(reserve("deploy", "manual"), permit=permit).code == "effectUndeclared"


def test_case_07_a_lost_idempotent_try_is_pending_again(bench: Harness) -> None:
    """The runner's end leaves a numbered, interrupted try, and the next runner tries again."""
    permit = bench.launch(workflow=IDEMPOTENT)
    effect_id = reserved(bench, permit, "idempotent")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    assert effect(bench) == ("pending", 1, False)
    assert run(bench) == ("queued", "queued", None)
    bench.clock.advance_ms(1_000)
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)
    bench.do(try_effect(effect_id, 2), permit=permit)
    bench.do(settle(effect_id, number=2), permit=permit)
    assert tries(bench) == ["interrupted", "applied"]


def test_case_07_a_lost_manual_try_parks_the_run(bench: Harness) -> None:
    """Nobody repeats it: the run keeps its status, the queue is parked with `effectAmbiguous`."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"), permit=permit)
    assert effect(bench) == ("ambiguous", 1, False)
    assert run(bench) == ("running", "parked", "effectAmbiguous")
    assert bench.answer(ResumeRun("run-1")).code == "effectAmbiguous"


@pytest.mark.parametrize(
    ("verdict", "status"), [("confirm", "applied"), ("retry", "pending"), ("reject", "rejected")]
)
def test_a_person_settles_an_ambiguous_effect(bench: Harness, verdict: str, status: str) -> None:
    """Each verdict sets the effect's status, keeps the evidence and queues the run."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"), permit=permit)
    stale = bench.answer(ResolveEffect("run-1", effect_id, 2, "confirm", "seen"))
    assert (stale.outcome, stale.code) == (Outcome.CONFLICT, "attemptMismatch")
    bench.do(ResolveEffect("run-1", effect_id, 1, verdict, "seen"))  # type: ignore[arg-type] # the three verdicts
    assert effect(bench)[0] == status
    assert run(bench) == ("queued", "queued", None)
    again = bench.answer(ResolveEffect("run-1", effect_id, 1, "confirm", "seen"))
    assert again.code == "effectNotAmbiguous"
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)
    values = bench.do(reserve("deploy", "manual", number=2), permit=permit).values
    assert isinstance(values, dict)
    assert values["status"] == status


def test_a_pause_lets_a_manual_effect_end_and_keeps_its_result(bench: Harness) -> None:
    """The flag is set at once; the claim ends when the effect settles, and its result counts."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    receipt = bench.do(PauseRun("run-1")).receipt
    assert receipt is not None
    assert b"after the current step" in receipt
    assert run(bench) == ("running", "running", None)
    leaving = settle(effect_id)
    bench.do(
        SettleEffect("run-1", effect_id, 1, "applied", result=leaving.result, leaves=True),
        permit=permit,
    )
    assert effect(bench) == ("applied", 1, True)
    assert run(bench) == ("running", "parked", None)
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)
    values = bench.do(reserve("deploy", "manual", number=2), permit=permit).values
    assert isinstance(values, dict)
    assert values["status"] == "applied"


def test_a_pause_interrupts_an_idempotent_effect(bench: Harness) -> None:
    """Repeating it is harmless, so nothing waits for it."""
    permit = bench.launch(workflow=IDEMPOTENT)
    effect_id = reserved(bench, permit, "idempotent")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(PauseRun("run-1"))
    assert effect(bench) == ("pending", 1, False)
    assert run(bench) == ("running", "parked", None)


@pytest.mark.parametrize(
    ("workflow", "recovery", "status"),
    [(IDEMPOTENT, "idempotent", "cancelled"), (MANUAL, "manual", "ambiguous")],
)
def test_a_cancel_does_not_wait_for_an_effect(
    bench: Harness, workflow: object, recovery: str, status: str
) -> None:
    """An idempotent effect is dropped; a manual one is ambiguous and blocks a restart."""
    permit = bench.launch(workflow=workflow)  # type: ignore[arg-type] # the two definitions above
    effect_id = reserved(bench, permit, recovery)
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(CancelRun("run-1"))
    assert effect(bench)[0] == status
    assert run(bench) == ("cancelled", "cancelled", None)
    revision = bench.revision()
    restart = bench.answer(RestartRun("run-1", revision))
    if status == "cancelled":
        assert restart.outcome is Outcome.ACCEPTED
    else:
        assert restart.code == "effectUnsettled"
        retry = bench.answer(ResolveEffect("run-1", effect_id, 1, "retry", "again"))
        assert retry.code == "runTerminal"
        bench.do(ResolveEffect("run-1", effect_id, 1, "reject", "not there"))
        assert run(bench) == ("cancelled", "cancelled", None)


def test_case_08_a_cancelled_run_stays_so_after_a_crash(bench: Harness) -> None:
    """Its effect is ambiguous, and nobody tries it again by himself."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(CancelRun("run-1"))
    bench.store.crash()
    assert recover(bench) == []
    assert run(bench) == ("cancelled", "cancelled", None)
    assert (effect(bench), tries(bench)) == (("ambiguous", 1, False), ["ambiguous"])
    assert bench.answer(ClaimRun("run-1")).code == "runTerminal"


def test_an_uncertain_manual_effect_parks_and_an_idempotent_one_goes_on(bench: Harness) -> None:
    """A timeout in the middle of a manual effect takes no route."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id, "uncertain"), permit=permit)
    assert effect(bench)[0] == "ambiguous"
    assert run(bench) == ("running", "parked", "effectAmbiguous")


def test_an_uncertain_idempotent_effect_ends_with_its_visit(bench: Harness) -> None:
    """Without a retry the visit's pending effect is cancelled with the attempt."""
    permit = bench.launch(workflow=IDEMPOTENT)
    effect_id = reserved(bench, permit, "idempotent")
    bench.do(try_effect(effect_id), permit=permit)
    assert bench.answer(end("deploy", outcome="timed_out"), permit=permit).code == "effectApplying"
    bench.do(settle(effect_id, "uncertain"), permit=permit)
    assert effect(bench) == ("pending", 1, False)
    bench.do(end("deploy", outcome="timed_out"), permit=permit)
    assert effect(bench) == ("cancelled", 1, True)
    bench.do(finish(outcome="timed_out"), permit=permit)
    assert run(bench) == ("timed_out", "failed", "nodeFailed")


def test_what_a_try_had_given_is_kept_when_it_is_cut_short(bench: Harness) -> None:
    """It is evidence for the person who decides, and no result: nothing adopts it."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    given, why = Blob.json({"stdout": "half"}), Failure("timedOut", "too long")
    cut = SettleEffect("run-1", effect_id, 1, "uncertain", result=given, failure=why)
    bench.do(cut, permit=permit)
    assert bench.dump("effect_attempts")[0][7:9] == (given.digest, why.blob().digest)
    assert effect(bench) == ("ambiguous", 1, False)
    assert bench.dump("effects")[0][11] is None
    assert_rebuilds(bench.store)


def test_an_effect_says_when_it_is_tried_again(bench: Harness) -> None:
    """With its run's delayed retry, also when the runner dies before it could leave; else never."""
    delayed: dict[str, canonical.Json] = {
        **action("idempotent"),
        "retry": {"maxAttempts": 9, "on": ["timed_out"], "delayMs": 4_000, "backoff": 1},
    }
    permit = bench.launch(workflow=definition({"deploy": delayed}))
    effect_id = reserved(bench, permit, "idempotent")
    for number, leave in ((1, Requeue("run-1", 4_000)), (2, lost(0))):
        bench.do(try_effect(effect_id, number), permit=permit)
        assert due_ms(bench) is None
        bench.do(settle(effect_id, "uncertain", number), permit=permit)
        assert (effect(bench)[0], due_ms(bench)) == ("pending", None)
        bench.do(end("deploy", outcome="timed_out", number=number), permit=permit)
        bench.do(leave, permit=permit)
        assert due_ms(bench) == bench.clock.now_ms() + 4_000
        bench.clock.advance_ms(4_000)
        permit = bench.relaunch()
        bench.do(begin("deploy", node_type="action", number=number + 1), permit=permit)
    bench.do(try_effect(effect_id, 3), permit=permit)
    bench.do(lost(2), permit=permit)
    assert due_ms(bench) == bench.clock.now_ms() + 1_000
    bench.do(CancelRun("run-1"))
    assert (effect(bench)[0], due_ms(bench)) == ("cancelled", None)
    assert_rebuilds(bench.store)


def lost(steps: int) -> LoseRunner:
    """Return the loss of a runner that began with so many steps."""
    return LoseRunner("run-1", steps, counted=True, detail="killed")


def due_ms(bench: Harness) -> object:
    """Return when the action's effect is tried again."""
    return next(row for row in bench.dump("effects") if row[4] == "deploy")[10]


def test_a_declared_retry_reopens_a_rejected_idempotent_effect(bench: Harness) -> None:
    """The same effect gets its next number; without a retry a rejected one stays rejected."""
    permit = bench.launch(workflow=RETRIED)
    effect_id = reserved(bench, permit, "idempotent")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id, "rejected"), permit=permit)
    assert bench.answer(try_effect(effect_id, 2), permit=permit).code == "effectNotPending"
    bench.do(
        end("deploy", outcome="failed"),
        begin("deploy", number=2, node_type="action"),
        permit=permit,
    )
    bench.do(try_effect(effect_id, 2), permit=permit)
    bench.do(settle(effect_id, number=2), permit=permit)
    assert tries(bench) == ["rejected", "applied"]
    assert effect(bench) == ("applied", 2, True)


@pytest.mark.parametrize(
    ("evidence", "result"),
    [
        ('{"id": 7}', {"id": 7}),
        ("seen", {"confirmed": True, "evidence": "seen"}),
        ("[1]", {"confirmed": True, "evidence": "[1]"}),
    ],
)
def test_what_a_person_confirms_is_the_result(
    bench: Harness, evidence: str, result: canonical.Json
) -> None:
    """A JSON object stands for what the action would have returned; other text is evidence."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"), permit=permit)
    bench.do(ResolveEffect("run-1", effect_id, 1, "confirm", evidence))
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)
    values = bench.do(reserve("deploy", "manual", number=2), permit=permit).values
    assert isinstance(values, dict)
    digest = values["result"]
    assert isinstance(digest, str)
    with bench.store.snapshot() as read:
        assert canonical.decode(read.blob(bytes.fromhex(digest))) == result


def test_an_action_succeeds_only_with_its_effect(bench: Harness) -> None:
    """A pending effect is neither dropped nor forgotten by an attempt that claims success."""
    permit = bench.launch(workflow=IDEMPOTENT)
    effect_id = reserved(bench, permit, "idempotent")
    assert bench.answer(end("deploy", {"id": 7}), permit=permit).code == "effectNotApplied"
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id), permit=permit)
    bench.do(end("deploy", {"id": 7}), permit=permit)


def test_a_verdict_on_a_paused_runs_effect_leaves_it_paused(bench: Harness) -> None:
    """The effect is settled; the run goes on only when it is resumed."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(PauseRun("run-1"))
    bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"), permit=permit)
    bench.do(ResolveEffect("run-1", effect_id, 1, "confirm", "seen"))
    assert run(bench)[:2] == ("running", "parked")
    bench.do(ResumeRun("run-1"))
    assert run(bench) == ("queued", "queued", None)


@pytest.mark.parametrize(
    ("model", "is_needed"),
    [("sample.Sent", True), (SHELL_RESULT_MODEL, False), (None, False)],
)
def test_a_confirmation_gives_the_result_that_a_model_wants(
    bench: Harness,
    model: str | None,
    is_needed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Text alone would only fail the node later; a command's own result nobody can write down."""
    node = action("manual")
    if model is not None:
        node["outputModel"] = model
    permit = bench.launch(workflow=definition({"deploy": node}))
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"), permit=permit)
    if is_needed:
        refused = bench.answer(ResolveEffect("run-1", effect_id, 1, "confirm", "seen"))
        assert (refused.code, effect(bench)[0]) == ("resultNeeded", "ambiguous")
        bench.do(ResolveEffect("run-1", effect_id, 1, "confirm", '{"id": 7}'))
    else:
        bench.do(ResolveEffect("run-1", effect_id, 1, "confirm", "seen"))
    assert effect(bench)[0] == "applied"
