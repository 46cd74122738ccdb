"""Who may say what about a run, and when: what comes too late, twice, or from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.effect.application import SettleEffect
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner, ReleaseClaim
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.ending import FailRun
from pi_workflows.domain.run.start import RestartRun, restart_id
from tests.kernel.harness import (
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

FAILURE = Failure("workflowSourceChanged", "it changed")
ASKING = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})
AGAIN = definition(
    {
        "deploy": {
            "type": "action",
            "actionForm": "function",
            "effect": {"type": "deploy", "recovery": "idempotent"},
            "retry": {"maxAttempts": 2, "on": ["failed"], "delayMs": 0, "backoff": 1},
        }
    },
    [{"from": "deploy", "on": "$result.outcome", "cases": {
        "ok": "deploy", "failed": "deploy", "timed_out": "deploy"}}],
)  # fmt: skip


def asked(bench: Harness, run_id: str) -> str:
    """Take a run to its question; return the question's ID."""
    permit = bench.launch(run_id, ASKING)
    bench.do(begin("gate", run_id=run_id, node_type="checkpoint"), permit=permit)
    answer = bench.do(ask("gate", run_id=run_id), permit=permit)
    return str(answer.events[0].fact.model_dump()["request"]["request_id"])


@pytest.mark.parametrize(
    "command",
    [
        FailRun("run-1", FAILURE),
        FailLaunch("run-1", FAILURE),
        begin("one"),
        end("one", 1),
        finish(outcome="failed"),
    ],
)
def test_what_a_runner_did_changes_nothing_after_a_pause(bench: Harness, command: Command) -> None:
    """The server may have to store a runner's fault or end right behind a pause: the pause won."""
    bench.launch()
    works = (bench.order(PauseRun("run-1")), bench.order(command))
    paused, late = bench.kernel.commit(works, bench.clock.now_ms())
    assert (paused.outcome, late.outcome) == (Outcome.ACCEPTED, Outcome.REJECTED)  # type: ignore[union-attr] # both are answers
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    bench.do(begin("one"), permit=permit)


def test_a_launch_fails_only_before_its_runner_is_ready(bench: Harness) -> None:
    """A run that is worked on is not parked as if its workflow could not be loaded."""
    bench.launch()
    assert bench.answer(FailLaunch("run-1", FAILURE)).code == "runNotStarting"


def test_a_claim_on_one_run_is_no_authority_over_another(bench: Harness) -> None:
    """The claim that an order shows has to be the one of the run that it is about."""
    bench.launch("run-1")
    other = bench.launch("run-2")
    refused = bench.answer(begin("one"), permit=other)
    assert (refused.outcome, refused.code) == (Outcome.CLAIM_LOST, "missingAuthority")


def test_a_server_does_not_release_its_own_claim_as_a_lost_one(bench: Harness) -> None:
    """Recovery ends the claims of servers that are gone, each once; released ones are adopted."""
    bench.launch()
    assert bench.answer(ReleaseClaim("run-1")).code == "claimHeld"
    bench.store.close()
    recover(bench)
    events = bench.dump("events")
    assert bench.do(ReleaseClaim("run-1")).outcome is Outcome.ADOPTED
    assert bench.dump("events") == events


def test_an_answers_name_is_used_once(bench: Harness) -> None:
    """A submission ID that answered one question is a conflict under another, and no crash."""
    for run_id, outcome in (("run-1", Outcome.ACCEPTED), ("run-2", Outcome.CONFLICT)):
        request = asked(bench, run_id)
        answer = bench.answer(AnswerCheckpoint(run_id, request, 1, "s", "k", Blob.json(1)))
        assert answer.outcome is outcome
        assert answer.code == (None if run_id == "run-1" else "submissionReused")


def test_a_restart_whose_name_is_taken_is_a_conflict(bench: Harness) -> None:
    """Somebody may have started a run under the ID that the restart would derive."""
    bench.do(bench.start())
    bench.do(CancelRun("run-1"))
    revision = bench.revision()
    bench.do(bench.start(restart_id("run-1", revision)))
    refused = bench.answer(RestartRun("run-1", revision))
    assert (refused.outcome, refused.code) == (Outcome.CONFLICT, "runIdTaken")


def test_a_success_has_no_error(bench: Harness) -> None:
    """Neither an attempt nor a run ends well and with an error."""
    permit = bench.launch(workflow=definition({"one": {}}))
    bench.do(begin("one"), permit=permit)
    wrong = replace(end("one", 1), failure=FAILURE)
    assert bench.answer(wrong, permit=permit).code == "errorUnexpected"
    bench.do(end("one", 1), permit=permit)
    assert bench.answer(replace(finish(1), failure=FAILURE), permit=permit).code == (
        "errorUnexpected"
    )
    bench.do(finish(1), permit=permit)


def test_only_an_answer_completes_a_checkpoint(bench: Harness) -> None:
    """A runner cannot answer for the person that it should have asked."""
    permit = bench.launch(workflow=ASKING)
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    assert bench.answer(end("gate", "yes"), permit=permit).code == "answerMissing"
    bench.do(ask("gate"), permit=permit)


def test_a_try_belongs_to_the_visit_that_is_open(bench: Harness) -> None:
    """A retry of one visit does not reopen the rejected effect of an earlier visit."""
    permit = bench.launch(workflow=AGAIN)
    effects: list[str] = []
    for number in (1, 2, 3, 4):
        visit = (number + 1) // 2
        bench.do(begin("deploy", visit=visit, number=number, node_type="action"), permit=permit)
        values = bench.do(reserve("deploy", number=number), permit=permit).values
        assert isinstance(values, dict)
        effects.append(str(values["effectId"]))
        if number == 4:
            break
        tries = (number - 1) % 2 + 1
        bench.do(try_effect(effects[-1], tries), permit=permit)
        bench.do(settle(effects[-1], "rejected", tries), permit=permit)
        bench.do(end("deploy", outcome="failed", number=number), permit=permit)
    assert effects[0] == effects[1] != effects[2] == effects[3]
    stale = bench.answer(try_effect(effects[0], 3), permit=permit)
    assert stale.code == "attemptMismatch"
    bench.do(try_effect(effects[3], 2), permit=permit)


@pytest.mark.parametrize(
    ("outcome", "result", "failure", "code"),
    [
        ("applied", None, None, "resultMismatch"),
        ("rejected", None, None, "errorMismatch"),
        ("applied", Blob.json(1), FAILURE, "errorMismatch"),
        ("uncertain", Blob.json(1), FAILURE, None),
    ],
)
def test_a_try_ends_with_the_account_that_fits(
    bench: Harness, outcome: str, result: Blob | None, failure: Failure | None, code: str | None
) -> None:
    """What was applied has a result, what was rejected an error, the rest what there is."""
    permit = bench.launch(workflow=AGAIN)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    values = bench.do(reserve("deploy"), permit=permit).values
    assert isinstance(values, dict)
    effect_id = str(values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    command = SettleEffect("run-1", effect_id, 1, outcome, result, failure)  # type: ignore[arg-type] # the three outcomes
    assert bench.answer(command, permit=permit).code == code


@pytest.mark.parametrize("reason", ["workflowSourceChanged", "effectAmbiguous"])
def test_a_pause_keeps_the_reason_for_which_a_run_was_parked(bench: Harness, reason: str) -> None:
    """Only a resume clears it, so that nobody forgets what a person has to do."""
    if reason == "effectAmbiguous":
        permit = bench.launch(workflow=WORKFLOWS["manual"])
        bench.do(begin("deploy", node_type="action"), permit=permit)
        values = bench.do(reserve("deploy", "manual"), permit=permit).values
        assert isinstance(values, dict)
        bench.do(try_effect(str(values["effectId"])), permit=permit)
        bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    else:
        bench.do(bench.start())
        bench.do(FailLaunch("run-1", FAILURE), permit=bench.claim())
    before = bench.dump("run_queue")[0]
    bench.do(PauseRun("run-1"))
    assert bench.dump("run_queue")[0][5:7] == before[5:7]
    assert before[5] == reason


def test_what_is_read_as_json_does_not_come_as_text(bench: Harness) -> None:
    """A runner's output, question, request or result that is named as text is refused."""
    text = Blob.text("plain")
    permit = bench.launch(workflow=AGAIN)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    told = replace(end("deploy", 1), output=text)
    assert bench.answer(told, permit=permit).code == "notJson"
    told = replace(end("deploy", outcome="failed"), receipt=text)
    assert bench.answer(told, permit=permit).code == "notJson"
    requested = replace(reserve("deploy"), request=text)
    assert bench.answer(requested, permit=permit).code == "notJson"
    values = bench.do(reserve("deploy"), permit=permit).values
    assert isinstance(values, dict)
    effect_id = str(values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    settled = replace(settle(effect_id), result=text)
    assert bench.answer(settled, permit=permit).code == "notJson"
    permit = bench.launch("run-2", ASKING)
    bench.do(begin("gate", run_id="run-2", node_type="checkpoint"), permit=permit)
    question = replace(ask("gate", run_id="run-2"), contract=text)
    assert bench.answer(question, permit=permit).code == "notJson"
