"""Two runs of a file: where they part, and what stands side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.audit.run_difference import RunDifference, compare_runs
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.domain.run.start import RestartRun, restart_id
from tests.kernel.harness import LINE, Harness, ask, begin, definition, end, finish
from tests.kernel.workflows import WORKFLOWS

_RING = definition({"one": {}}, [{"from": "one", "to": "one"}], max_steps=1_000)


@pytest.fixture
def bench(tmp_path: Path) -> Harness:
    """Drive a new database, which a test closes before it looks into the file."""
    return Harness(tmp_path / "state")


def compared(bench: Harness, left: str = "run-1", right: str = "run-2") -> RunDifference:
    """Stop, and compare two runs of what is left."""
    bench.store.close()
    return looked_up(bench, left, right)


def looked_up(bench: Harness, left: str, right: str) -> RunDifference:
    """Compare two runs of an installation that stopped."""
    file = bench.directory / "state.sqlite"
    return compare_runs(file, live_directory=None, left=left, right=right)


def line(bench: Harness, run_id: str, last: Json = 2, *, active_ms: int = 5) -> None:
    """Take a run of two steps to its end."""
    permit = bench.launch(run_id)
    bench.do(begin("one", run_id=run_id), permit=permit)
    bench.clock.advance_ms(active_ms)
    first = end("one", 1, run_id=run_id, elapsed_ms=active_ms)
    bench.do(first, begin("two", run_id=run_id), permit=permit)
    bench.do(end("two", last, run_id=run_id), finish(last, run_id=run_id), permit=permit)


def test_the_same_work_is_equal_whatever_it_took(bench: Harness) -> None:
    """Two runs that did the same do not part; their times stand side by side."""
    line(bench, "run-1")
    line(bench, "run-2", active_ms=900)
    found = compared(bench)
    assert found.is_equal
    assert (found.parting, found.beginning) == (None, ())
    nodes = found.left.nodes["one"], found.right.nodes["one"]
    assert [node.times.active_ms for node in nodes] == [5, 900]
    assert [side.totals.active_ms for side in (found.left, found.right)] == [10, 905]


def test_a_lost_runner_is_no_other_step(bench: Harness) -> None:
    """A node that had to begin again gave what it gave: the attempts stand side by side."""
    line(bench, "run-1")
    permit = bench.launch("run-2")
    bench.do(begin("one", run_id="run-2"), permit=permit)
    bench.do(LoseRunner("run-2", 0, counted=False, detail="killed"))
    permit = bench.relaunch("run-2")
    bench.do(begin("one", run_id="run-2", number=2), permit=permit)
    bench.do(end("one", 1, run_id="run-2", number=2), begin("two", run_id="run-2"), permit=permit)
    bench.do(end("two", 2, run_id="run-2"), finish(2, run_id="run-2"), permit=permit)
    found = compared(bench)
    assert found.is_equal
    assert [side.nodes["one"].times.attempts for side in (found.left, found.right)] == [1, 2]


def test_another_output_parts_them(bench: Harness) -> None:
    """The first step with another digest is the one."""
    line(bench, "run-1", 2)
    line(bench, "run-2", 3)
    found = compared(bench)
    assert not found.is_equal
    assert found.parting is not None
    left, right = found.parting
    assert left is not None
    assert right is not None
    assert (left.step_index, left.node_id, right.node_id) == (1, "two", "two")
    assert left.output_hash == Blob.json(2).digest
    assert right.output_hash == Blob.json(3).digest


def test_one_that_stopped_earlier_parts_where_it_stopped(bench: Harness) -> None:
    """A step that only one of them took parts them, on whichever side."""
    line(bench, "run-1")
    permit = bench.launch("run-2")
    bench.do(begin("one", run_id="run-2"), permit=permit)
    bench.do(end("one", 1, run_id="run-2"), permit=permit)
    found = compared(bench)
    assert found.parting is not None
    assert [step and step.node_id for step in found.parting] == ["two", None]
    other = looked_up(bench, "run-2", "run-1")
    assert other.parting is not None
    assert [step and step.node_id for step in other.parting] == [None, "two"]


def test_another_workflow_is_said_first(bench: Harness) -> None:
    """Runs of different workflows and inputs are told apart before their steps."""
    line(bench, "run-1")
    bench.do(bench.start("run-2", WORKFLOWS["gate"], run_input={"task": "other"}))
    found = compared(bench)
    assert found.beginning == ("definition", "input")
    assert not found.is_equal


def test_a_restart_is_compared_with_its_parent(bench: Harness) -> None:
    """A restart begins with what its parent began with, and parts where it went another way."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), finish(outcome="failed"), permit=permit)
    revision = bench.revision()
    bench.do(RestartRun("run-1", revision))
    child = restart_id("run-1", revision)
    permit = bench.relaunch(child)
    bench.do(begin("one", run_id=child), permit=permit)
    bench.do(end("one", 1, run_id=child), permit=permit)
    found = compared(bench, right=child)
    assert found.beginning == ()
    assert found.parting is not None
    assert [step and step.outcome for step in found.parting] == ["failed", "ok"]
    assert found.left.record.definition_digest == LINE.digest


def test_waiting_stands_apart_from_work(bench: Harness) -> None:
    """How long a question waited is the node's waiting, not its activity."""
    permit = bench.launch("run-1", WORKFLOWS["gate"])
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate"), permit=permit)
    bench.clock.advance_ms(60_000)
    request_id = str(bench.dump("interactive_requests")[0][0])
    bench.do(AnswerCheckpoint("run-1", request_id, None, "a", "k", Blob.json({"route": "a"})))
    found = compared(bench, right="run-1")
    assert found.is_equal
    times = found.left.nodes["gate"].times
    assert (times.active_ms, times.waiting_ms) == (0, 60_000)


def test_a_long_run_is_compared_page_by_page(bench: Harness) -> None:
    """The step that differs is found however far from the beginning it is."""
    for run_id, last in (("run-1", "a"), ("run-2", "b")):
        permit = bench.launch(run_id, _RING)
        for number in range(1, 261):
            output: Json = {"route": last} if number == 260 else {"route": "x"}
            start = begin("one", run_id=run_id, visit=number, number=number)
            bench.do(start, end("one", output, run_id=run_id, number=number), permit=permit)
    found = compared(bench)
    assert found.parting is not None
    assert [step and step.step_index for step in found.parting] == [259, 259]
    assert found.left.step_total == found.right.step_total == 260


def test_a_run_that_is_not_in_the_file(bench: Harness) -> None:
    """It is told as missing, on either side."""
    line(bench, "run-1")
    bench.store.close()
    for left, right in (("run-0", "run-1"), ("run-1", "run-0")):
        with pytest.raises(NotFound):
            looked_up(bench, left, right)


def test_no_value_stands_in_the_document(bench: Harness) -> None:
    """Values are told by digest and size, never as they are."""
    line(bench, "run-1", "hunter2-planted")
    line(bench, "run-2", "hunter3-planted")
    document = str(compared(bench).document())
    assert "planted" not in document
    assert "check" not in document
