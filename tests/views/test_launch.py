"""What a runner goes on from."""

from __future__ import annotations

import pytest

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import INLINE_BYTES_MAX, LAUNCH_INLINE_BYTES_MAX
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.domain.run.start import RestartRun, restart_id
from pi_workflows.protocol.content import BlobRef, JsonRef, Ref
from pi_workflows.protocol.runner import Last, NodeResult, OpenVisit, Resume
from pi_workflows.views.launch import LaunchFacts, launch_facts
from tests.kernel.harness import LINE, Harness, ask, begin, definition, end, finish
from tests.views.reading import line

RETRY: dict[str, Json] = {"retry": {"maxAttempts": 5, "on": ["failed"], "delayMs": 0, "backoff": 1}}


def facts(bench: Harness, run_id: str = "run-1") -> LaunchFacts:
    """Return what a launch of a run begins with."""
    with bench.store.snapshot() as read:
        return launch_facts(read, run_id)


def resume(bench: Harness) -> Resume:
    """Return what a resumed run did before."""
    found = facts(bench).resume
    assert found is not None
    return found


def value(ref: Ref) -> Json:
    """Return a value that travels inside the envelope."""
    assert isinstance(ref, JsonRef), ref
    return canonical.decode(canonical.encode(ref.value))


def test_a_first_launch_has_nothing_behind_it(bench: Harness) -> None:
    """Until a runner was ready the tag is `start`, with the input and where all comes from."""
    bench.do(bench.start())
    bench.claim()
    found = facts(bench)
    assert (found.tag, found.resume, found.step_total) == ("start", None, 0)
    assert found.project_path == "/project"
    assert found.execution_mode == "headless"
    assert found.definition_digest == f"sha256:{LINE.hex}"
    assert found.definition_hash == LINE.digest
    assert found.launch_options_hash == Blob.json({"sourceFiles": []}).digest
    assert value(found.run_input) == {"task": "check"}
    assert [(m.mount, m.source.type, m.source.ref, m.source.revision) for m in found.mounts] == [
        ("", "file", "/project/sample_workflow.py", "a" * 64)
    ]


def test_a_launch_says_whether_a_session_takes_the_steps(bench: Harness) -> None:
    """Only then may a runner ask a model."""
    bench.do(bench.start(session="session-1"))
    bench.claim()
    assert facts(bench).execution_mode == "interactive"


def test_a_resumed_run_knows_its_history(bench: Harness) -> None:
    """Visits, attempts, outputs and results by node, and the visit that settled last."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", {"a": 1}), permit=permit)
    found = resume(bench)
    assert facts(bench).tag == "resume"
    assert found.run_revision == bench.revision()
    assert (found.step_total, found.visits, found.attempts) == (1, {"one": 1}, {"one": 1})
    assert {path: value(ref) for path, ref in found.outputs.items()} == {"one": {"a": 1}}
    assert found.results == {"one": NodeResult(outcome="ok")}
    assert found.last == Last(node_path="one", visit=1, tries=1, outcome="ok")
    assert found.open is None


def test_a_lost_attempt_leaves_its_visit_open(bench: Harness) -> None:
    """The visit goes on, with the tries that settled in it; the lost one is none of them."""
    permit = bench.launch(workflow=definition({"one": RETRY}))
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), begin("one", number=2), permit=permit)
    bench.do(LoseRunner("run-1", 1, counted=False, detail="gone"), permit=permit)
    found = resume(bench)
    assert found.open == OpenVisit(
        attempt_id=ids.attempt_id("run-1", "one", 2), node_path="one", visit=1, tries=1
    )
    assert found.last == Last(node_path="one", visit=1, tries=1, outcome="failed")
    assert found.attempts == {"one": 2}
    error = found.results["one"].error
    assert error is not None
    assert (error.code, error.message) == ("nodeFailed", "it did not work")


def test_an_accepted_answer_goes_with_its_attempt(bench: Harness) -> None:
    """The attempt that asked goes on under its own ID, with the answer and its request."""
    workflow = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})
    permit = bench.launch(workflow=workflow)
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate"), permit=permit)
    attempt = ids.attempt_id("run-1", "gate", 1)
    request = ids.request_id("run-1", attempt)
    assert resume(bench).open is None
    answer = AnswerCheckpoint("run-1", request, 1, "submission", "key", Blob.json({"go": True}))
    bench.do(answer)
    found = resume(bench).open
    assert found is not None
    assert (found.attempt_id, found.node_path, found.request) == (attempt, "gate", request)
    assert (found.visit, found.tries) == (1, 0)
    assert found.accepted is not None
    assert value(found.accepted) == {"go": True}


def test_a_restart_begins_again(bench: Harness) -> None:
    """A restarted run has the input and definition of its parent, and none of its history."""
    permit = bench.launch()
    bench.do(finish(outcome="failed"), permit=permit)
    bench.do(RestartRun("run-1", bench.revision()))
    child = restart_id("run-1", bench.revision())
    found = facts(bench, child)
    assert (found.tag, found.resume) == ("restart", None)
    assert value(found.run_input) == {"task": "check"}


def test_large_values_are_named(bench: Harness) -> None:
    """One value over 16 KiB goes by name; smaller ones too, once the envelope is full."""
    count = LAUNCH_INLINE_BYTES_MAX // 15_000 + 2
    names = [f"n{index:02}" for index in range(count)]
    workflow = definition({name: {} for name in names}, line(names))
    large = "x" * INLINE_BYTES_MAX
    bench.do(bench.start(workflow=workflow, run_input=large))
    permit = bench.relaunch()
    for name in names:
        bench.do(begin(name), permit=permit)
        bench.do(end(name, f"{name}{'y' * 15_000}"), permit=permit)
    found = facts(bench)
    blob = Blob.json(large)
    assert found.run_input == BlobRef.of(blob)
    assert found.resume is not None
    inline = [name for name in names if isinstance(found.resume.outputs[name], JsonRef)]
    assert sum(15_005 for _ in inline) <= LAUNCH_INLINE_BYTES_MAX
    assert inline == names[-len(inline) :]
    assert 0 < len(inline) < count
    assert isinstance(found.resume.outputs[names[0]], BlobRef)


def test_there_is_nothing_to_launch_of_no_run(bench: Harness) -> None:
    """An unknown run is named."""
    with pytest.raises(NotFound) as refusal:
        facts(bench, "ghost")
    assert refusal.value.reason_code == "runMissing"
