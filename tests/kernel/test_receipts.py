"""What a caller is told has the shape that the client library promises."""

from __future__ import annotations

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.kernel.order import Answer
from pi_workflows.protocol import effects, runs
from pi_workflows.protocol.wire import WireModel
from tests.kernel.harness import Harness, ask, begin, end, try_effect
from tests.kernel.test_effects import MANUAL, reserved
from tests.kernel.test_run import GATE


def fits(answer: Answer, model: type[WireModel]) -> None:
    """Fail unless a receipt is exactly what a model says."""
    assert answer.receipt is not None
    value = canonical.decode(answer.receipt)
    assert model.parse(value).document() == value


def test_the_receipts_of_a_runs_commands_have_their_models(bench: Harness) -> None:
    """Start, pause, resume in its three ways, answer, cancel and restart."""
    fits(bench.do(bench.start("idle")), runs.RunStarted)
    fits(bench.do(ResumeRun("idle")), runs.RunWasActive)
    fits(bench.do(PauseRun("idle")), runs.RunPaused)
    fits(bench.do(PauseRun("idle")), runs.RunPaused)
    fits(bench.do(ResumeRun("idle")), runs.RunQueuedAgain)
    fits(bench.do(CancelRun("idle")), runs.RunCancelled)
    fits(bench.do(CancelRun("idle")), runs.RunCancelled)
    fits(bench.do(RestartRun("idle", bench.revision("idle"))), runs.RunRestarted)
    permit = bench.launch(workflow=GATE)
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    asked = bench.do(ask("gate"), permit=permit)
    bench.do(PauseRun("run-1"))
    fits(bench.do(ResumeRun("run-1")), runs.RunWaitsAgain)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    answer = AnswerCheckpoint("run-1", request, 2, "submission", "key", Blob.json(1))
    fits(bench.do(answer), runs.CheckpointAnswered)


def test_the_receipt_of_a_verdict_has_its_model(bench: Harness) -> None:
    """It names the effect, the run, the try, the verdict and what became of the effect."""
    permit = bench.launch(workflow=MANUAL)
    effect_id = reserved(bench, permit, "manual")
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="server lost"), permit=permit)
    verdict = bench.do(ResolveEffect("run-1", effect_id, 1, "confirm", "seen"))
    fits(verdict, effects.EffectResolved)
