"""Pages of steps and of the trace, and the graph that goes with them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import RevisionConflict
from pi_workflows.base.limits import PAGE_BYTES_MAX
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.store.records import Permit
from pi_workflows.views.facts import run_facts
from pi_workflows.views.pages import run_page
from pi_workflows.views.settlement import settled_seq
from tests.kernel.harness import Harness, ask, begin, definition, end, finish
from tests.views.reading import Document, at, items, page, view

LOOP = definition({"one": {}}, [{"from": "one", "to": "one"}], max_steps=1_000)
SETTLED: dict[str, Json] = {"outcome": "ok", "outputStored": True, "elapsedMs": 5}


def looped(bench: Harness, steps: int, text: str = "") -> Permit:
    """Take steps of one node that follows itself; the next attempt is open."""
    permit = bench.launch(workflow=LOOP)
    bench.do(begin("one"), permit=permit)
    commands: list[Command] = []
    for number in range(1, steps + 1):
        commands += [
            end("one", {"n": number, "text": text}, number=number),
            begin("one", visit=number + 1, number=number + 1),
        ]
        if number % 50 == 0 or number == steps:
            bench.do(*commands, permit=permit)
            commands = []
    return permit


def numbers(document: Document) -> list[Json]:
    """Return the numbers in the outputs of a page of steps."""
    return [at(item, "output", "n") for item in items(document, "items")]


@pytest.mark.slow
def test_a_page_of_steps_is_a_window_around_its_cursor(bench: Harness) -> None:
    """The last steps without a cursor, else those around it, numbered from `start` on."""
    looped(bench, 300)
    for cursor, first in ((None, 0), (0, 0), (150, 22), (299, 44), (10_000, 44)):
        document = page(bench, "steps", cursor)
        found = numbers(document)
        start = at(document, "start")
        assert isinstance(start, int)
        assert found == list(range(start + 1, start + 1 + len(found)))
        assert start >= first
        assert at(document, "total") == 300
        assert document.get("cursor") == cursor
        wanted = 300 if cursor is None else min(cursor, 299) + 1
        assert wanted in found
        assert len(canonical.encode(at(document, "items"))) <= PAGE_BYTES_MAX


def test_a_page_is_bounded_in_bytes(bench: Harness) -> None:
    """Large outputs make a short page, with the step at the cursor in it."""
    looped(bench, 12, "x" * 15_000)
    document = page(bench, "steps", 6)
    assert numbers(document) == [5, 6, 7, 8]
    assert (at(document, "start"), at(document, "total")) == (4, 12)


def test_an_empty_page_is_a_page(bench: Harness) -> None:
    """A run without steps has a page of them, and a graph."""
    bench.do(bench.start())
    document = page(bench, "steps")
    found = [at(document, name) for name in ("start", "total", "items", "graphSteps")]
    assert found == [0, 0, [], []]
    assert (at(document, "graphCursor"), at(document, "takenTransitions")) == (0, [])


def test_a_page_of_another_revision_is_a_conflict(bench: Harness) -> None:
    """The caller names the presentation revision that its other pages are of."""
    bench.do(bench.start())
    revision = at(view(bench), "revision")
    assert isinstance(revision, int)
    with bench.store.snapshot() as read:
        assert run_page(read, "run-1", "trace", None, revision).revision == revision
        with pytest.raises(RevisionConflict):
            run_page(read, "run-1", "trace", None, revision + 1)


def everything(bench: Harness) -> None:
    """Let a run meet most of what can happen to one."""
    nodes: dict[str, dict[str, Json]] = {
        "work": {},
        "gate": {"type": "checkpoint", "timeoutMs": 0},
    }
    workflow = definition(nodes, [{"from": "work", "to": "gate"}])
    bench.do(bench.start(workflow=workflow))
    permit = bench.claim()
    bench.do(FailLaunch("run-1", Failure("importError", "no module x")), permit=permit)
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    bench.do(begin("work"), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    bench.clock.advance_ms(1_000)
    permit = bench.relaunch()
    bench.do(begin("work", number=2), permit=permit)
    bench.do(PauseRun("run-1"), permit=permit)
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    bench.do(begin("work", number=3), permit=permit)
    bench.do(end("work", 1, number=3), begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate"), permit=permit)


def test_the_trace_is_every_event_of_the_run(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """Items are numbered by revision from 1, name nodes and attempts, and hold no stored value."""
    everything(bench)
    document = page(bench, "trace")
    found = items(document, "items")
    assert [item["seq"] for item in found] == list(range(1, bench.revision() + 1))
    assert at(document, "total") == bench.revision()
    assert {str(item["type"]) for item in found} <= EVENTS.keys()
    assert [(i["scope"], i["type"], i.get("nodeId"), i["payload"]) for i in found] == snapshot


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
def test_the_end_of_a_run_stands_in_its_trace(bench: Harness, ending: str) -> None:
    """The terminal event says how the run ended, who cancelled it, and which values are stored."""
    permit = bench.launch(workflow=definition({"one": {}}))
    bench.do(begin("one"), permit=permit)
    stored: dict[str, Json]
    match ending:
        case "completed":
            bench.do(end("one", 1), finish(1), permit=permit)
            stored = {"finalOutputStored": True}
        case "failed":
            bench.do(end("one", outcome="failed"), finish(outcome="failed"), permit=permit)
            stored = {"errorStored": True}
        case _:
            bench.do(CancelRun("run-1"))
            stored = {"actor": "control"}
    last = next(i for i in items(page(bench, "trace"), "items") if i["type"] == f"run.{ending}")
    assert last["payload"] == {"status": ending, **stored}


@pytest.mark.slow
def test_a_follower_reads_the_trace_by_its_last_number(bench: Harness) -> None:
    """The `seq` of the last item is the cursor of the next page, until nothing is left."""
    looped(bench, 300)
    seen = 0
    pages = 0
    while seen < bench.revision():
        found = [int(str(i["seq"])) for i in items(page(bench, "trace", seen), "items")]
        fresh = [seq for seq in found if seq > seen]
        assert fresh[0] == seen + 1
        assert all(after == before + 1 for before, after in pairwise(fresh))
        seen = fresh[-1]
        pages += 1
    assert pages < 10


@pytest.mark.parametrize("seed", range(3))
def test_the_trace_is_shown_where_a_step_settled(bench: Harness, seed: int) -> None:
    """However attempts publish, are lost and tried again, whatever clocks say: to the event."""
    draw = random.Random(seed)  # noqa: S311 - a walk, no secret
    permit = bench.launch(workflow=LOOP)
    tries = 0
    for visit in range(1, 13):
        for is_lost in [*[True] * draw.choice((0, 0, 1, 2)), False]:
            tries += 1
            bench.do(begin("one", visit=visit, number=tries), permit=permit)
            attempt = begin("one", number=tries).attempt_id
            for key in range(draw.choice((0, 0, 1, 9))):
                update = RecordUpdate("run-1", attempt, "progress", str(key % 3), Blob.json(key))
                bench.do(update, permit=permit)
            bench.clock.advance_ms(draw.choice((-50, 0, 1)))
            if is_lost:
                bench.do(LoseRunner("run-1", 0, counted=False, detail="gone"), permit=permit)
                permit = bench.relaunch()
        bench.do(end("one", visit, number=tries), permit=permit)
    trace = items(page(bench, "trace"), "items")
    settled = {at(i, "payload", "stepIndex"): i["seq"] for i in trace if "stepIndex" in str(i)}
    assert list(settled) == list(range(12))
    with bench.store.snapshot() as read:
        facts = run_facts(read, "run-1")
        assert [settled_seq(read, facts, step) for step in range(12)] == list(settled.values())
    document = page(bench, "trace_at_step", 3)
    assert (at(document, "kind"), at(document, "cursor")) == ("trace_at_step", 3)
    assert at(document, "items") == trace


@pytest.mark.slow
def test_a_page_at_a_step_is_a_window_of_the_trace(bench: Harness) -> None:
    """The step's end stands in the middle of a long trace; behind the last step is the end."""
    looped(bench, 300)
    for step in (0, 150, 299):
        document = page(bench, "trace_at_step", step)
        found = items(document, "items")
        assert [i for i in found if i["payload"] == {**SETTLED, "stepIndex": step}]
        start = at(document, "start")
        assert isinstance(start, int)
        assert [i["seq"] for i in found] == list(range(start + 1, start + 1 + len(found)))
        assert at(document, "total") == bench.revision()
    for cursor in (None, 300, 10_000):
        last = items(page(bench, "trace_at_step", cursor), "items")[-1]
        assert last["seq"] == bench.revision()
    bench.do(bench.start("run-2"))
    assert len(items(page(bench, "trace_at_step", 0, "run-2"), "items")) == 1


@pytest.mark.slow
def test_progress_comes_in_pages(bench: Harness) -> None:
    """The newest of each key, in the order of publication, beyond what the view has room for."""
    permit = bench.launch(workflow=LOOP)
    bench.do(begin("one"), permit=permit)
    attempt = begin("one").attempt_id
    for key in (*range(300), 7):
        data = Blob.json({"key": key})
        bench.do(RecordUpdate("run-1", attempt, "file", f"{key:03}", data), permit=permit)
    order = [f"{key:03}" for key in (*range(7), *range(8, 300), 7)]
    found: list[Json] = []
    while len(found) < 300:
        document = page(bench, "updates", len(found))
        start, total = at(document, "start"), at(document, "total")
        assert isinstance(start, int)
        assert (total, start <= len(found)) == (300, True)
        found += [item["key"] for item in items(document, "items")][len(found) - start :]
    assert found == order
    last = page(bench, "updates")
    assert at(last, "items") == at(view(bench), "updates")
    assert at(last, "start") == at(view(bench), "updateStart")


def graph(document: Document) -> tuple[Json, ...]:
    """Return the attempts, the transitions and the step of a graph."""
    attempts: list[Json] = [step["attemptId"] for step in items(document, "graphSteps")]
    return attempts, at(document, "takenTransitions"), at(document, "graphCursor")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_graph_at_a_step_is_the_graph_as_it_was(bench: Harness, seed: int) -> None:
    """A page's graph shows what the view showed when the step at its cursor had settled."""
    names = ["a", "b", "c", "d"]
    nodes: dict[str, dict[str, Json]] = {
        name: {"retry": {"maxAttempts": 3, "on": ["failed"], "delayMs": 0, "backoff": 1}}
        for name in names
    }
    cases: dict[str, Json] = {name: name for name in names}
    edges: list[dict[str, Json]] = [{"from": n, "on": "$.to", "cases": cases} for n in names]
    permit = bench.launch(workflow=definition(nodes, edges))
    draw = random.Random(seed)  # noqa: S311 - a walk, no secret
    node, visits, tries = "a", dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    shown: list[tuple[Json, ...]] = []
    for _ in range(25):
        visits[node] += 1
        following = draw.choice(names)
        for outcome in [*["failed"] * draw.randrange(3), "ok"]:
            for is_lost in [*[True] * draw.choice((0, 0, 1)), False]:
                tries[node] += 1
                bench.do(begin(node, visit=visits[node], number=tries[node]), permit=permit)
                if is_lost:
                    bench.do(LoseRunner("run-1", 0, counted=False, detail="gone"), permit=permit)
                    permit = bench.relaunch()
            output: Json = {"to": following}
            bench.do(end(node, output, number=tries[node], outcome=outcome), permit=permit)
            shown.append(graph(view(bench)))
        node = following
    assert [graph(page(bench, "steps", step)) for step in range(len(shown))] == shown


def test_transitions_are_the_last_way_into_and_out_of_each_node(bench: Harness) -> None:
    """A way that both ends have left for another one since is not shown; a retry is no way."""
    nodes: dict[str, dict[str, Json]] = {name: {} for name in ("a", "b", "c", "d")}
    cases: dict[str, Json] = {name: name for name in nodes}
    edges: list[dict[str, Json]] = [{"from": n, "on": "$", "cases": cases} for n in nodes]
    permit = bench.launch(workflow=definition(nodes, edges))
    walk = ["a", "b", "a", "c", "b", "d"]
    visits = dict.fromkeys(nodes, 0)
    for here, following in zip(walk, [*walk[1:], "d"], strict=True):
        visits[here] += 1
        bench.do(begin(here, visit=visits[here], number=visits[here]), permit=permit)
        bench.do(end(here, following, number=visits[here]), permit=permit)
    # a->b was taken first, but a went to c last, and b was entered from c last.
    assert at(view(bench), "takenTransitions") == ["a->c", "b->a", "b->d", "c->b"]
    bench.do(begin("d", visit=2, number=2), permit=permit)
    assert at(view(bench), "takenTransitions") == ["a->c", "b->a", "b->d", "c->b", "d->d"]
