"""The run view: one document that says where a run is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import (
    INLINE_BYTES_MAX,
    PAGE_BYTES_MAX,
    SNAPSHOT_BYTES_MAX,
    VIEW_DEFINITION_BYTES_MAX,
)
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.protocol.artifact import plain
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_view import run_view
from tests.kernel.harness import Harness, ask, begin, definition, end, finish
from tests.views.reading import Document, at, items, line, view

GATE = definition(
    {"work": {}, "gate": {"type": "checkpoint", "timeoutMs": 0, "summary": "Go on?"}},
    [{"from": "work", "to": "gate"}],
)


def waiting(bench: Harness) -> str:
    """Let a run ask its question; return the question's ID."""
    permit = bench.launch(workflow=GATE)
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", {"found": 3}), begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate"), permit=permit)
    return str(at(view(bench), "state", "interaction", "requestId"))


def answer(bench: Harness, request_id: str, value: Json = "yes") -> AnswerCheckpoint:
    """Return the command that answers a question."""
    revision = at(view(bench), "state", "interaction", "revision")
    assert isinstance(revision, int)
    return AnswerCheckpoint("run-1", request_id, revision, "submission-1", "key", Blob.json(value))


def told(document: Document) -> tuple[Json, ...]:
    """Return the status, activity, reason and controls of a view."""
    return tuple(
        at(document, "display", name) for name in ("status", "activity", "reason", "controls")
    )


def test_a_run_that_waits_for_a_runner(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """Before anything happened a view has its identity, input, definition and queue entry."""
    bench.do(bench.start())
    assert view(bench) == snapshot


def test_a_run_that_ended(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """An ended run shows its output, each node's newest step, its steps and its trace."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.clock.advance_ms(40)
    bench.do(end("one", {"a": 1}), begin("two"), permit=permit)
    bench.clock.advance_ms(60)
    bench.do(end("two", {"b": [2]}), finish({"b": [2]}), permit=permit)
    assert view(bench) == snapshot


def test_a_run_that_waits_for_an_answer(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """The question stands in the state with what an answer has to name; `waitingOn` is its node."""
    waiting(bench)
    document = view(bench)
    assert at(document, "state", "waitingOn") == "gate"
    assert "currentNode" not in items({"s": [at(document, "state")]}, "s")[0]
    assert at(document, "state", "interaction") == snapshot
    assert told(document) == (
        "waiting",
        None,
        "Waiting for an answer.",
        ["pause", "cancel", "answer"],
    )


def test_an_accepted_answer_waits_for_a_runner(bench: Harness) -> None:
    """After the answer nothing waits for a person; the node is current until it has taken it."""
    request_id = waiting(bench)
    bench.do(answer(bench, request_id))
    document = view(bench)
    assert told(document)[0] == "queued"
    assert at(document, "state", "currentNode") == "gate"
    state = items({"s": [at(document, "state")]}, "s")[0]
    assert not state.keys() & {"waitingOn", "interaction"}
    permit = bench.relaunch()
    bench.do(end("gate", "yes"), finish("yes"), permit=permit)
    assert at(view(bench), "state", "finalOutput") == "yes"


def test_a_resumed_question_has_a_new_revision(bench: Harness) -> None:
    """A pause keeps the question, and the resume raises the revision that an answer names."""
    waiting(bench)
    bench.do(PauseRun("run-1"))
    assert told(view(bench)) == (
        "paused",
        None,
        "Paused until somebody resumes it.",
        ["resume", "cancel"],
    )
    assert at(view(bench), "state", "paused") is True
    bench.do(ResumeRun("run-1"))
    assert at(view(bench), "state", "interaction", "revision") == 2


def test_the_process_decides_whether_a_runner_works(bench: Harness) -> None:
    """The same rows show a working runner or a lost one, and nothing of it is stored."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    working, lost = view(bench, live=True), view(bench)
    assert told(working)[:2] == ("running", "supervised_runner")
    assert told(lost)[:2] == ("queued", None)
    assert (at(working, "live"), at(working, "possiblyInterrupted")) == (True, False)
    assert (at(lost, "live"), at(lost, "possiblyInterrupted")) == (False, True)
    for name in ("display", "live", "possiblyInterrupted"):
        del working[name], lost[name]
    assert working == lost


def test_a_claim_that_expired_shows_no_runner(bench: Harness) -> None:
    """A live process without its claim works on nothing."""
    bench.launch()
    bench.clock.advance_ms(60_000)
    assert told(view(bench, live=True))[0] == "queued"


def test_a_parked_run_says_why_and_what_to_do(bench: Harness) -> None:
    """The stored error's own message is the reason, and the run can be resumed."""
    bench.do(bench.start())
    permit = bench.claim()
    failure = Failure("importError", "line 3: no module named frobnicate")
    bench.do(FailLaunch("run-1", failure), permit=permit)
    document = view(bench)
    assert told(document) == ("queued", None, failure.message, ["resume", "cancel"])
    assert at(document, "queue", "errorCode") == "importError"
    assert at(document, "possiblyInterrupted") is True


def test_a_failed_run_shows_its_error(bench: Harness) -> None:
    """The error stands in the state, in the step and in the node's result; no output remains."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), finish(outcome="failed"), permit=permit)
    document = view(bench)
    error: Json = {"code": "nodeFailed", "message": "it did not work"}
    assert at(document, "state", "error") == error
    assert at(document, "state", "results") == {"one": {"outcome": "failed", "error": error}}
    assert at(document, "state", "outputs") == {}
    assert at(document, "state", "steps", 0, "error") == error
    assert at(document, "state", "steps", 0, "output") is None
    assert told(document)[2] == "it did not work"


def test_outputs_hold_the_newest_ok_output_of_each_node(bench: Harness) -> None:
    """A later success replaces an output, a later failure removes it, a lost try leaves it."""
    retry: dict[str, Json] = {
        "retry": {"maxAttempts": 9, "on": ["failed"], "delayMs": 0, "backoff": 1}
    }
    loop = definition({"one": retry}, [{"from": "one", "to": "one"}])
    permit = bench.launch(workflow=loop)
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", "first"), begin("one", visit=2, number=2), permit=permit)
    assert at(view(bench), "state", "outputs") == {"one": "first"}
    bench.do(LoseRunner("run-1", 0, counted=False, detail="gone"), permit=permit)
    assert at(view(bench), "state", "outputs") == {"one": "first"}
    permit = bench.relaunch()
    bench.do(begin("one", visit=2, number=3), permit=permit)
    failed = replace(end("one", number=3, outcome="failed"), output=Blob.json("half"))
    bench.do(failed, permit=permit)
    document = view(bench)
    assert at(document, "state", "steps", -1, "output") == "half"
    assert at(document, "state", "outputs") == {}
    assert (at(document, "outputTotal"), at(document, "resultTotal")) == (0, 1)
    bench.do(begin("one", visit=2, number=4), permit=permit)
    bench.do(end("one", "second", number=4), permit=permit)
    assert at(view(bench), "state", "outputs") == {"one": "second"}


def test_a_run_cancelled_at_work_shows_the_node_that_it_left(bench: Harness) -> None:
    """The attempt that ended with its run is no step, but the graph and the results have it."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(CancelRun("run-1"))
    document = view(bench)
    assert at(document, "stepTotal") == 0
    assert [step["outcome"] for step in items(document, "graphSteps")] == ["cancelled"]
    assert at(document, "state", "results") == {"one": {"outcome": "cancelled"}}


def update(bench: Harness, key: str, done: int) -> RecordUpdate:
    """Return a progress update of the open attempt."""
    attempt = at(view(bench), "state", "currentAttemptId")
    data = Blob.json({"completed": done})
    return RecordUpdate("run-1", str(attempt), "progress", key, data)


def test_updates_are_the_newest_of_each_key(bench: Harness) -> None:
    """An update replaces the one before it under its key; order is by publication."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    for key, done in (("files", 1), ("bytes", 7), ("files", 2), ("a/b", 1), ("files", 3)):
        bench.do(update(bench, key, done), permit=permit)
    document = view(bench)
    found = [(item["key"], at(item, "data", "completed")) for item in items(document, "updates")]
    assert found == [("bytes", 7), ("a/b", 1), ("files", 3)]
    assert (at(document, "updateStart"), at(document, "updateTotal")) == (0, 3)
    trace = items(document, "tracePage", "items")
    assert [item["type"] for item in trace][-1] == "update.recorded"
    assert items(document, "updates")[-1]["seq"] == trace[-1]["seq"]


def test_an_account_stands_until_a_newer_one_replaces_it(bench: Harness) -> None:
    """A new attempt ends none; of two attempts or nodes with one key the later one stands."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(update(bench, "files", 1), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=False, detail="gone"), permit=permit)
    permit = bench.relaunch()
    bench.do(begin("one", number=2), permit=permit)
    assert [item["data"] for item in items(view(bench), "updates")] == [{"completed": 1}]
    bench.do(update(bench, "files", 2), update(bench, "rest", 9), permit=permit)
    bench.do(end("one", 1, number=2), begin("two"), permit=permit)
    bench.do(update(bench, "files", 3), permit=permit)
    found = [(item["nodeId"], item["key"]) for item in items(view(bench), "updates")]
    assert found == [("one", "rest"), ("two", "files")]


def test_a_view_has_two_revisions(bench: Harness) -> None:
    """Watchers follow one revision a command, commands compare the one of the run's events."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    first = view(bench)
    bench.do(end("one", 1), begin("two"), permit=permit)
    second = view(bench)
    assert at(second, "revision") == int(str(at(first, "revision"))) + 1
    assert at(second, "runRevision") == bench.revision()
    assert at(second, "state", "traceSeq") == at(second, "tracePage", "total") == bench.revision()


def test_there_is_no_view_of_no_run(bench: Harness) -> None:
    """An unknown run is named as the field at fault."""
    with bench.store.snapshot() as read, pytest.raises(NotFound) as refusal:
        run_view(read, "ghost", ProcessFacts(0))
    assert (refusal.value.reason_code, refusal.value.field) == ("runMissing", "runId")


def test_large_values_are_references(bench: Harness) -> None:
    """Input, outputs and final output over 16 KiB are referred to; smaller ones stand there."""
    large = "x" * INLINE_BYTES_MAX
    bench.do(bench.start(run_input=large))
    permit = bench.relaunch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", large), begin("two"), permit=permit)
    bench.do(end("two", large), finish(large), permit=permit)
    state = at(view(bench), "state")
    reference = {"$artifact": at(state, "input", "$artifact")}
    assert at(reference, "$artifact", "sha256") == Blob.json(large).hex
    assert at(state, "outputs", "one") == reference
    assert at(state, "steps", 0, "output") == reference
    assert at(state, "finalOutput") == reference


def test_outputs_that_do_not_fit_together_are_references(bench: Harness) -> None:
    """The newest outputs stand in the view while there is room, earlier ones are referred to."""
    count = 20
    names = [f"n{index:02}" for index in range(count)]
    permit = bench.launch(workflow=definition({name: {} for name in names}, line(names)))
    for name in names:
        bench.do(begin(name), permit=permit)
        bench.do(end(name, f"{name}{'x' * 12_000}"), permit=permit)
    document = view(bench)
    outputs = at(document, "state", "outputs")
    assert isinstance(outputs, dict)
    inline = [name for name in names if isinstance(outputs[name], str)]
    assert 5 < len(inline) < count
    assert inline == names[-len(inline) :]
    assert at(document, "outputTotal") == len(outputs) == count


def test_a_long_error_is_a_phrase_and_a_reference(bench: Harness) -> None:
    """A reason over 16 KiB becomes its fixed phrase, and the whole error is referred to."""
    bench.do(bench.start())
    permit = bench.claim()
    failure = Failure("importError", "é" * INLINE_BYTES_MAX)
    bench.do(FailLaunch("run-1", failure), permit=permit)
    document = view(bench)
    assert at(document, "display", "reason") == "The workflow's file can no longer be loaded."
    content = at(document, "display", "reasonContent", "$artifact", "sha256")
    assert content == failure.blob().hex


def wide(bench: Harness, nodes: int, filler: int) -> str:
    """Run every node of a wide definition, whose outputs fill what a page may hold."""
    names = [f"node-{index:04}" for index in range(nodes)]
    summaries: dict[str, dict[str, Json]] = {name: {"summary": "s" * filler} for name in names}
    permit = bench.launch(workflow=definition(summaries, line(names), max_steps=nodes))
    for name in names:
        bench.do(begin(name), permit=permit)
        bench.do(end(name, f"{name}{'y' * 15_000}"), permit=permit)
    return names[-1]


def test_a_large_definition_is_shown_by_windows(bench: Harness) -> None:
    """Over 128 KiB the nodes and edges around the current node are shown, the whole referred to."""
    names = [f"node-{index:04}" for index in range(400)]
    nodes: dict[str, dict[str, Json]] = {name: {"summary": "s" * 400} for name in names}
    edges: list[Document] = [
        {"from": here, "on": "$", "cases": {"$artifact": following}}
        for here, following in pairwise(names)
    ]
    # The first node leads into the middle.
    edges[0]["cases"] = {"on": "node-0001", "far": "node-0200"}
    workflow = definition(nodes, edges)
    assert len(workflow.content) > VIEW_DEFINITION_BYTES_MAX
    permit = bench.launch(workflow=workflow)
    bench.do(begin("node-0000"), permit=permit)
    bench.do(end("node-0000", "far"), begin("node-0200"), permit=permit)
    shown = at(view(bench), "workflow")
    assert at(shown, "schema") == "pi-workflows.definition-snapshot.v1"
    assert (at(shown, "nodeTotal"), at(shown, "edgeTotal")) == (400, 399)
    window, start = at(shown, "nodes"), at(shown, "nodeStart")
    assert isinstance(window, dict)
    assert isinstance(start, int)
    assert list(window) == names[start : start + len(window)]
    assert 100 < len(window) < 256
    assert abs(start + len(window) // 2 - 200) <= 1
    assert len(canonical.encode(window)) <= PAGE_BYTES_MAX
    near, first = at(shown, "edges"), at(shown, "edgeStart")
    assert isinstance(near, list)
    assert isinstance(first, int)
    assert plain(near) == edges[first : first + len(near)]
    assert abs(first + len(near) // 2 - 200) <= 1
    assert at(near, 0, "cases") == {"$escaped": {"$artifact": f"node-{first + 1:04}"}}
    assert at(shown, "content", "$artifact", "sha256") == workflow.hex
    bench.do(end("node-0200", "done"), permit=permit)
    assert at(view(bench), "workflow", "nodeStart") == start


@pytest.mark.slow
def test_a_view_never_exceeds_its_bound(bench: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """When everything is large at once the budgets are halved until the document fits."""
    last = wide(bench, 60, 800)
    full = len(canonical.encode(view(bench)))
    assert full <= SNAPSHOT_BYTES_MAX
    assert at(view(bench), "graphSteps", -1, "nodeId") == last
    monkeypatch.setattr("pi_workflows.views.run_view.SNAPSHOT_BYTES_MAX", full // 4)
    small = view(bench)
    assert len(canonical.encode(small)) <= full // 4
    assert at(small, "state", "steps", -1, "nodeId") == last
    assert at(small, "stepTotal") == 60
