"""A run's history does not make its next step dearer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import VIEW_REVISIONS_KEPT
from pi_workflows.domain.fact import Command
from pi_workflows.domain.run.control import PauseRun, ResumeRun
from pi_workflows.store.records import Permit
from pi_workflows.store.statistics import Totals, measure
from tests.kernel.harness import Harness, begin, definition, end, reserve, settle, try_effect

STEPS = 1_000
SHARE_MAX = 0.02
# Content is stored under its digest, so each new value lands on a page of its own once the index
# is wide. In a nearly empty database several share a page, which says nothing about a run.
HISTORY_STEPS = 4_000
AHEAD = 16

LOOP = definition({"one": {}}, [{"from": "one", "to": "one"}], max_steps=HISTORY_STEPS + 1)


@dataclass(frozen=True)
class Cost:
    """What a hundred steps took."""

    statements: int
    vm_steps: int
    wal_bytes: int


def hundred(bench: Harness, permit: Permit, first: int) -> Cost:
    """Take a hundred steps and return what they cost."""
    totals = Totals()
    bench.store.checkpoint(truncate=True)
    with measure(bench.store, totals.add):
        for number in range(first, first + 100):
            bench.clock.advance_ms(3)
            bench.do(
                end("one", {"n": number}, number=number),
                begin("one", visit=number + 1, number=number + 1),
                permit=permit,
            )
    return Cost(totals.statements, totals.vm_steps, bench.store.wal_bytes())


def fill(bench: Harness) -> None:
    """Give the database the history of another run, as a runner that runs ahead writes it."""
    permit = bench.launch("earlier", workflow=LOOP)
    bench.do(begin("one", run_id="earlier"), permit=permit)
    for first in range(1, HISTORY_STEPS, AHEAD):
        commands: list[Command] = []
        for number in range(first, first + AHEAD):
            commands.append(end("one", {"n": -number}, run_id="earlier", number=number))
            commands.append(begin("one", run_id="earlier", visit=number + 1, number=number + 1))
        bench.do(*commands[: -1 if first + AHEAD > HISTORY_STEPS else None], permit=permit)


@pytest.mark.slow
def test_the_last_hundred_steps_cost_what_an_early_hundred_did(bench: Harness) -> None:
    """Statements, VM steps and bytes of the log rise by less than two percent in 1,000 steps.

    From when the window of patches is full on: until then nothing falls out of it.
    """
    fill(bench)
    permit = bench.launch(workflow=LOOP)
    bench.do(begin("one"), permit=permit)
    costs = [hundred(bench, permit, first) for first in range(1, STEPS, 100)]
    early, last = costs[VIEW_REVISIONS_KEPT // 100 + 1], costs[-1]
    for name in ("statements", "vm_steps", "wal_bytes"):
        before, after = getattr(early, name), getattr(last, name)
        assert after - before <= SHARE_MAX * before, (name, costs)


APPLIED = 160
ACT: dict[str, Json] = {
    "type": "action",
    "actionForm": "function",
    "effect": {"type": "deploy", "recovery": "idempotent"},
}
ACTING = definition({"one": ACT}, [{"from": "one", "to": "one"}], max_steps=APPLIED + 1)


def act(bench: Harness, permit: Permit, number: int, visit: int) -> int:
    """Take one action through its effect; return the VM steps that it took."""
    totals = Totals()
    with measure(bench.store, totals.add):
        bench.do(begin("one", visit=visit, number=number, node_type="action"), permit=permit)
        values = bench.do(reserve("one", number=number), permit=permit).values
        assert isinstance(values, dict)
        effect_id = str(values["effectId"])
        bench.do(try_effect(effect_id), permit=permit)
        bench.do(settle(effect_id), permit=permit)
        bench.do(end("one", {"id": 7}, number=number), permit=permit)
    return totals.vm_steps


def stop_and_go(bench: Harness) -> tuple[int, Permit]:
    """Pause a run and let it go on; return the VM steps that it took, and the new claim."""
    totals = Totals()
    with measure(bench.store, totals.add):
        bench.do(PauseRun("run-1"))
        bench.do(ResumeRun("run-1"))
        permit = bench.relaunch()
    return totals.vm_steps, permit


@pytest.mark.slow
def test_effects_that_were_applied_make_the_next_one_no_dearer(bench: Harness) -> None:
    """Neither an action nor a pause looks at what its run has done to the world before."""
    permit = bench.launch(workflow=ACTING)
    acts: list[int] = []
    stops: list[int] = []
    for visit in range(1, APPLIED + 1):
        acts.append(act(bench, permit, visit, visit))
        if visit % 10 == 0:
            steps, permit = stop_and_go(bench)
            stops.append(steps)
    # Every visit is several commands, so that the window of patches is full by then.
    early, late = sum(acts[80:100]), sum(acts[-20:])
    assert abs(late - early) <= SHARE_MAX * early, (early, late)
    assert abs(stops[-1] - stops[8]) <= SHARE_MAX * stops[8], stops
