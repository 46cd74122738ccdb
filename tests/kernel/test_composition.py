"""Included workflows as the server sees them: routes, invocations, limits, and their cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.definition.composition import open_mounts
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.attempt.invocations import first_step, invocation
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.protocol.content import JsonRef
from pi_workflows.protocol.runner import MountState, Resume
from pi_workflows.runner import plan
from pi_workflows.runner.history import History
from pi_workflows.runner.plan import Enter, Settled
from pi_workflows.store.records import Permit
from pi_workflows.store.statistics import Totals, measure
from pi_workflows.views.launch import launch_facts
from tests.kernel.compositions import composition
from tests.kernel.harness import Harness, begin, end, finish
from tests.kernel.rebuilt import assert_rebuilds


@dataclass
class Walk:
    """A run through a composition, taken as its runner would."""

    bench: Harness
    workflow: Blob
    permit: Permit
    snapshot: Snapshot
    history: History
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    at: Enter = field(default_factory=lambda: Enter("plan", 1, 0))

    @classmethod
    def launch(cls, bench: Harness, workflow: Blob) -> Walk:
        """Start a run and its first node."""
        permit = bench.launch(workflow=workflow)
        snapshot = Snapshot.parse(workflow.content)
        walk = cls(bench, workflow, permit, snapshot, History.of(snapshot))
        walk.begin(walk.at)
        return walk

    def begin(self, step: Enter) -> None:
        """Start a node."""
        for mount in step.enters:
            self.history.enter(mount)
            self.numbers[mount] = self.numbers.get(mount, 0) + 1
        self.at = step
        number = self.history.attempts.get(step.node_path, 0) + 1
        self.history.attempts[step.node_path] = number
        self.history.visits[step.node_path] = step.visit
        self.bench.do(begin(step.node_path, visit=step.visit, number=number), permit=self.permit)

    def settle(self, output: str) -> plan.Step:
        """End the node with an output, and return what follows."""
        path, visit = self.at.node_path, self.at.visit
        number = self.history.attempts[path]
        self.bench.do(end(path, output, number=number), permit=self.permit)
        self.history.settle(path, visit, "ok", Blob.json(output).content, None)
        return plan.after(self.snapshot, self.history, Settled(path, visit, 1, "ok"))

    def go(self, output: str) -> None:
        """End the node, and start the one that follows."""
        step = self.settle(output)
        assert isinstance(step, Enter), step
        self.begin(step)

    def refused(self, step: Enter) -> tuple[str | None, str | None]:
        """Start a node that the server must refuse; return its code and words."""
        number = self.history.attempts.get(step.node_path, 0) + 1
        answer = self.bench.answer(
            begin(step.node_path, visit=step.visit, number=number), permit=self.permit
        )
        assert answer.outcome is Outcome.REJECTED
        return answer.code, answer.error

    def lose(self) -> Resume:
        """Lose the runner, let another one take over, and return what that one is told."""
        self.bench.do(LoseRunner("run-1", 0, counted=False, detail="gone"), permit=self.permit)
        with self.bench.store.snapshot() as read:
            found = launch_facts(read, "run-1").resume
        assert found is not None
        self.permit = self.bench.relaunch()
        if found.open is not None:
            path, visit = found.open.node_path, found.open.visit
            self.history.attempts[path] += 1
            number = self.history.attempts[path]
            self.bench.do(begin(path, visit=visit, number=number), permit=self.permit)
        return found


def ways(snapshot: Snapshot, path: str) -> list[str]:
    """Return the outputs with which a node leads on."""
    edge = snapshot.edge_by_source.get(path)
    return [] if edge is None else sorted(edge.cases or {"": ""})


def test_a_run_goes_through_included_workflows_and_back(bench: Harness) -> None:
    """Nodes stand under their full paths; the run's output is that of its last node."""
    walk = Walk.launch(bench, composition())
    for output in ("", "in", "again", "out", "back", "out", "out"):
        walk.go(output)
    assert walk.at.node_path == "last"
    assert walk.settle("done") == plan.Over("completed", output=b'"done"')
    bench.do(finish("done"), permit=walk.permit)
    assert_rebuilds(bench.store)


def test_a_node_inside_that_is_not_due_is_refused(bench: Harness) -> None:
    """The route decides, whatever a runner says."""
    walk = Walk.launch(bench, composition())
    walk.settle("")
    assert walk.refused(Enter("ship/repair/try", 1, 0))[0] == "routeMismatch"


@pytest.mark.parametrize(
    ("limits", "outputs", "message"),
    [
        ({"repair": 2}, ["", "in", "again"], "Ship/repair took 2 steps"),
        ({"ship": 3, "repair": 2}, ["", "in", "again"], "Ship took 3 steps"),
        ({"ship": 2}, ["", "in"], "Ship took 2 steps"),
        ({"max_steps": 3, "ship": 2}, ["", "in"], "The run took 3 steps"),
    ],
)
def test_case_15_nothing_nested_starts_past_a_limit(
    limits: dict[str, int], outputs: list[str], message: str, bench: Harness
) -> None:
    """The outermost limit that is reached is told; both sides stop at the same step."""
    walk = Walk.launch(bench, composition(**limits))
    for output in outputs:
        walk.go(output)
    before = walk.at
    over = walk.settle("again" if before.node_path == "ship/repair/try" else "in")
    assert isinstance(over, plan.Over)
    assert over.failure is not None
    assert over.failure.code == "maxSteps"
    following = walk.history.visits.get("ship/repair/try", 0) + 1
    code, words = walk.refused(Enter("ship/repair/try", following, 0))
    assert code == "maxSteps"
    assert words is not None
    assert words.startswith(message)
    assert over.failure.message.lower() in words.lower()


def test_case_15_a_lost_attempt_is_no_step_of_its_invocation(bench: Harness) -> None:
    """What is replayed after a loss counts once."""
    walk = Walk.launch(bench, composition(repair=2))
    walk.go("")
    walk.go("in")
    for _ in range(2):
        assert walk.lose().mounts == {
            "ship": MountState(steps=1),
            "ship/repair": MountState(steps=0),
        }
    walk.go("again")
    assert isinstance(walk.settle("again"), plan.Over)


def test_case_16_an_invocation_counts_from_its_own_beginning(bench: Harness) -> None:
    """Entering again gives a fresh limit, through an exit of the mount itself too."""
    walk = Walk.launch(bench, composition(ship=4, repair=3))
    walk.go("")
    for _ in range(3):
        for output in ("in", "again", "out", "back"):
            walk.go(output)
    assert walk.history.step_total == 13
    walk.go("in")
    walk.go("again")
    walk.go("again")
    assert isinstance(walk.settle("again"), plan.Over)


def test_an_exit_that_is_tried_again_has_left_nothing(bench: Harness) -> None:
    """A failed attempt of an exit's node is a step of the invocation that goes on."""
    again: Json = {"maxAttempts": 2, "on": ["failed"], "delayMs": 0, "backoff": 1}
    walk = Walk.launch(bench, composition(retry=again))
    for output in ("", "in", "out"):
        walk.go(output)
    bench.do(end("ship/repair/end", outcome="failed"), permit=walk.permit)
    bench.do(begin("ship/repair/end", number=2), permit=walk.permit)
    walk.history.attempts["ship/repair/end"] = 2
    found = walk.lose()
    assert found.mounts == {"ship": MountState(steps=3), "ship/repair": MountState(steps=2)}
    assert found.exited is None


def told(walk: Walk) -> tuple[dict[str, Json], dict[str, MountState], dict[str, int]]:
    """Return the outputs, mounts and exits that a new runner is told."""
    found = walk.lose()
    outputs: dict[str, Json] = {}
    for path, ref in found.outputs.items():
        assert isinstance(ref, JsonRef)
        outputs[path] = ref.value
    return outputs, found.mounts or {}, found.exited or {}


def test_case_16_a_resumed_runner_is_told_the_open_invocations_only(bench: Harness) -> None:
    """Outputs of an invocation that is over are gone; how a mount was left last is not."""
    walk = Walk.launch(bench, composition())
    for output in ("", "in", "out", "back"):
        walk.go(output)
    outputs, mounts, exited = told(walk)
    assert walk.at.node_path == "ship/look"
    assert {*outputs} == {"plan"}
    left = MountState(steps=0, exit="done", output=mounts["ship"].output)
    assert mounts == {"ship": left}
    assert exited == {"ship/repair/end": 1}
    walk.go("in")
    walk.go("again")
    outputs, mounts, _ = told(walk)
    assert {*outputs} == {"plan", "ship/look", "ship/repair/try"}
    assert mounts["ship"].steps == 2
    assert mounts["ship/repair"] == MountState(steps=1)
    walk.go("out")
    walk.settle("out")
    outputs, mounts, exited = told(walk)
    assert {*outputs} == {"plan"}
    assert {*mounts} == {"ship"}
    assert (mounts["ship"].steps, mounts["ship"].exit) == (None, "done")
    assert exited == {"ship/repair/end": 2}


@settings(max_examples=15, deadline=None)
@given(choices=st.lists(st.integers(0, 2), min_size=1, max_size=25))
def test_both_sides_count_invocations_alike(
    choices: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After any way through a composition the server tells from its rows what a runner counted."""
    bench = Harness(tmp_path_factory.mktemp("walk"))
    walk = Walk.launch(bench, composition())
    for choice in choices:
        inside = open_mounts(walk.snapshot, walk.at.node_path, has_ended_well=False)
        with bench.store.snapshot() as read:
            for mount in inside:
                began = first_step(read, "run-1", walk.snapshot, mount)
                assert began == walk.history.began[mount]
                assert invocation(read, "run-1", walk.snapshot, mount) == walk.numbers[mount]
        fresh = recalled(walk)
        assert fresh.began == {mount: walk.history.began[mount] for mount in inside}
        for scope in ("", *inside):
            assert fresh.local(scope) == walk.history.local(scope), scope
        outputs = ways(walk.snapshot, walk.at.node_path)
        if not outputs:
            break
        walk.go(outputs[choice % len(outputs)])
    bench.store.close()


def recalled(walk: Walk) -> History:
    """Return the history that a runner which takes over begins with."""
    found = walk.lose()
    history = History.of(walk.snapshot)
    history.step_total = found.step_total
    for path, ref in found.outputs.items():
        history.keep(path, _content(ref))
    for path, result in found.results.items():
        history.note(path, result.outcome, result.error)
    for path, state in (found.mounts or {}).items():
        if state.steps is not None:
            history.began[path] = found.step_total - state.steps
        if state.exit is not None:
            history.keep_exit(path, state.exit, _content(state.output))
    return history


def _content(ref: object) -> bytes:
    assert isinstance(ref, JsonRef)
    return Blob.json(ref.value).content


ROUNDS = 60
SHARE_MAX = 0.02


def rounds(walk: Walk) -> Iterator[int]:
    """Go round and round through both mounts, and yield the VM steps of each round."""
    walk.go("")
    while True:
        totals = Totals()
        with measure(walk.bench.store, totals.add):
            for output in ("in", "again", "again", "out", "back"):
                walk.go(output)
        yield totals.vm_steps


@pytest.mark.slow
def test_a_round_through_included_workflows_gets_no_dearer(bench: Harness) -> None:
    """Neither the invocations before nor the steps of this one make the next step dearer."""
    costs = [
        cost
        for _, cost in zip(
            range(ROUNDS), rounds(Walk.launch(bench, composition(max_steps=1_000))), strict=False
        )
    ]
    early, late = sum(costs[35:45]), sum(costs[-10:])
    assert abs(late - early) <= SHARE_MAX * early, costs
