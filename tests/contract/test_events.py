"""The stored form of every kind of event.

A changed snapshot here means an incompatible database.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.domain.attempt.boundary import Requeue
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner, ReleaseClaim
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.store.log import events
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
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.recording import bind, complete, entries, failed
from tests.kernel.test_writers import WRITERS

ACTION: dict[str, Json] = {
    "type": "action",
    "actionForm": "function",
    "effect": {"type": "deploy", "recovery": "idempotent"},
    "retry": {"maxAttempts": 2, "on": ["failed"], "delayMs": 100, "backoff": 1},
}
MANUAL: dict[str, Json] = {
    "type": "action",
    "actionForm": "function",
    "effect": {"type": "deploy", "recovery": "manual"},
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """Drive a new database, and compare it with a rebuild from its log afterwards."""
    harness = Harness(tmp_path / "state")
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()


def test_every_kind_of_event_has_its_stored_form(
    bench: Harness, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    """One event of each kind, as its canonical bytes say."""
    checkpoint(bench)
    action(bench)
    manual(bench)
    endings(bench)
    captures(bench)
    forms = stored(bench)
    for event_type in EVENTS.keys() - forms.keys():
        other = Harness(tmp_path / event_type)
        other.submit(WRITERS[event_type](other))
        forms[event_type] = stored(other)[event_type]
        assert_rebuilds(other.store)
        other.store.close()
    assert set(forms) == set(EVENTS)
    assert dict(sorted(forms.items())) == snapshot


def stored(bench: Harness) -> dict[str, Json]:
    """Return the newest event of each kind that a database has."""
    with bench.store.snapshot() as read:
        return {event.event_type: canonical.decode(event.payload) for event in events(read)}


def checkpoint(bench: Harness) -> None:
    """Progress, a question, a pause across it, its answer, the end."""
    gate = definition(
        {"work": {}, "gate": {"type": "checkpoint", "timeoutMs": 0}},
        [{"from": "work", "to": "gate"}],
    )
    permit = bench.launch("asks", gate)
    work = begin("work", run_id="asks")
    bench.do(work, permit=permit)
    progress = Blob.json({"status": "running"})
    bench.do(RecordUpdate("asks", work.attempt_id, "progress", "main", progress), permit=permit)
    bench.do(end("work", 1, run_id="asks"), permit=permit)
    bench.do(begin("gate", run_id="asks", node_type="checkpoint"), permit=permit)
    asked = bench.do(ask("gate", run_id="asks"), permit=permit)
    request = asked.events[0].fact.model_dump()["request"]["request_id"]
    bench.do(PauseRun("asks"))
    bench.do(ResumeRun("asks"))
    bench.do(AnswerCheckpoint("asks", request, 2, "submission-1", "key-1", Blob.json("yes")))
    permit = bench.relaunch("asks")
    bench.do(end("gate", "yes", run_id="asks"), permit=permit)
    bench.do(finish("yes", run_id="asks"), permit=permit)


def action(bench: Harness) -> None:
    """A rejected try, its delayed retry, a lost try, a cancelled run."""
    permit = bench.launch(workflow=definition({"deploy": ACTION}))
    bench.do(begin("deploy", node_type="action"), permit=permit)
    effect_id = reserved(bench.do(reserve("deploy"), permit=permit).values)
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id, "rejected"), permit=permit)
    bench.do(end("deploy", outcome="failed"), permit=permit)
    bench.do(Requeue("run-1", 100), permit=permit)
    bench.clock.advance_ms(100)
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)
    bench.do(try_effect(effect_id, 2), permit=permit)
    bench.do(LoseRunner("run-1", 1, counted=True, detail="killed"), permit=permit)
    bench.do(CancelRun("run-1"))


def manual(bench: Harness) -> None:
    """A lost manual try, what a person says about it, a server that vanished."""
    permit = bench.launch("manual", definition({"deploy": MANUAL}))
    start = begin("deploy", run_id="manual", node_type="action")
    bench.do(start, permit=permit)
    order = reserve("deploy", "manual")
    command = type(order)("manual", start.attempt_id, "deploy", "manual", order.request)
    effect_id = reserved(bench.do(command, permit=permit).values)
    begun = try_effect(effect_id)
    bench.do(type(begun)("manual", effect_id, 1, "worker-1"), permit=permit)
    bench.do(LoseRunner("manual", 0, counted=False, detail="server lost"), permit=permit)
    bench.do(ResolveEffect("manual", effect_id, 1, "confirm", "seen on the dashboard"))
    bench.relaunch("manual")
    bench.store.close()
    bench.reopen()
    bench.do(ReleaseClaim("manual"))
    bench.do(LoseRunner("manual", 0, counted=False, detail="server lost"))


def endings(bench: Harness) -> None:
    """A timeout, a failure, a changed source, a broken import, a run without progress."""
    permit = bench.launch("slow")
    bench.do(begin("one", run_id="slow"), permit=permit)
    bench.do(end("one", run_id="slow", outcome="timed_out"), permit=permit)
    bench.do(finish(run_id="slow", outcome="timed_out"), permit=permit)
    permit = bench.launch("broken")
    bench.do(begin("one", run_id="broken"), permit=permit)
    bench.do(end("one", run_id="broken", outcome="failed"), permit=permit)
    bench.do(finish(run_id="broken", outcome="failed"), permit=permit)
    for run_id, code in (("changed", "workflowSourceChanged"), ("unloadable", "importError")):
        bench.do(bench.start(run_id))
        bench.do(FailLaunch(run_id, Failure(code, "a line")), permit=bench.claim(run_id))
    bench.do(bench.start("stuck"))
    for _ in range(3):
        permit = bench.claim("stuck")
        bench.do(LoseRunner("stuck", 0, counted=True, detail="killed"), permit=permit)
        bench.clock.advance_ms(5_000)


def captures(bench: Harness) -> None:
    """A session that was captured to its end, and one whose recorder gave up."""
    bench.do(bind("stuck"))
    bench.do(entries([1, 2], "stuck"))
    bench.do(complete(2, 0, "stuck"))
    bench.do(bind("stuck", "again"))
    bench.do(failed("stuck", "again"))


def reserved(values: Json) -> str:
    """Return the ID of the effect that a reservation named."""
    assert isinstance(values, dict)
    effect_id = values["effectId"]
    assert isinstance(effect_id, str)
    return effect_id
