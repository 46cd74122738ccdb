"""Nothing that people read or watch costs more because values or runs are larger.

Statements, instructions of SQLite's machine and pages of the database are counted; none of them
depends on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from hypothesis import settings

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.fact import Command
from pi_workflows.store.records import Permit
from pi_workflows.views.facts import ProcessFacts, run_facts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_list import queue_items, run_list_page
from pi_workflows.views.run_patch import run_patch
from pi_workflows.views.run_view import run_view
from pi_workflows.views.session_view import session_work
from tests.kernel.harness import Harness, begin, definition, end
from tests.views.costs import Cost, cost_of

RUN: Final = "run-1"
NODES: Final = ("a", "b", "c", "d", "e")
RING: Final = definition(
    {name: {} for name in NODES},
    [{"from": a, "to": b} for a, b in zip(NODES, (*NODES[1:], NODES[0]), strict=True)],
    max_steps=60_000,
)
SHARE_MAX: Final = 0.02
_IS_SOAK: Final = settings.get_current_profile_name() == "soak"
STEPS_MAX: Final = 50_000 if _IS_SOAK else 5_000

Costs: TypeAlias = Mapping[str, Cost]


def works(bench: Harness) -> Mapping[str, Callable[[Read], object]]:
    """Return what is read again and again while a run goes on, and what people ask for."""
    process = ProcessFacts(bench.clock.now_ms())

    def news(read: Read) -> object:
        revision = run_facts(read, RUN).revision
        patch = run_patch(read, RUN, revision - 1, process)
        assert patch is not None
        return patch

    return {
        "list": lambda read: run_list_page(read, process),
        "queue": lambda read: queue_items(read, 100),
        "news": news,
        "session": lambda read: session_work(read, f"of-{RUN}", process),
        "view": lambda read: run_view(read, RUN, process),
        "steps": lambda read: run_page(read, RUN, "steps", None),
        "trace": lambda read: run_page(read, RUN, "trace", None),
        "updates": lambda read: run_page(read, RUN, "updates", None),
    }


class Ring:
    """A run that goes around.

    Args:
        bench: Its database.
        run_id: Its name.
        value_chars: How long its values are.
    """

    def __init__(self, bench: Harness, run_id: str = RUN, value_chars: int = 40) -> None:
        self.bench = bench
        self.run_id = run_id
        self.text = "x" * value_chars
        self.steps = 0
        start = bench.start(run_id, RING, session=f"of-{run_id}", run_input={"text": self.text})
        bench.do(start)
        self.permit: Permit = bench.relaunch(run_id)
        bench.do(begin("a", run_id=run_id), self.update(), permit=self.permit)

    def update(self) -> Command:
        """Return progress of the node that works."""
        node, number = NODES[self.steps % 5], self.steps // 5 + 1
        attempt_id = begin(node, run_id=self.run_id, number=number).attempt_id
        data = Blob.json({"label": self.text})
        return RecordUpdate(self.run_id, attempt_id, "progress", "files", data)

    def walk(self, steps: int) -> None:
        """Go on until so many steps are done, twenty in a proposal."""
        while self.steps < steps:
            commands: list[Command] = []
            for _ in range(20):
                node, number = NODES[self.steps % 5], self.steps // 5 + 1
                output: Json = {"step": 1_000_000 + self.steps, "text": self.text}
                commands.append(end(node, output, run_id=self.run_id, number=number))
                self.steps += 1
                node, number = NODES[self.steps % 5], self.steps // 5 + 1
                commands.append(begin(node, run_id=self.run_id, visit=number, number=number))
            self.bench.clock.advance_ms(1)
            self.bench.do(*commands, self.update(), permit=self.permit)

    def costs(self) -> Costs:
        """Return what each read costs now."""
        return {name: cost_of(self.bench.store, work) for name, work in works(self.bench).items()}


def assert_no_dearer(before: Costs, after: Costs, pages_share: float) -> None:
    """Fail when something takes other statements, more instructions, or more pages than a share."""
    for name, cost in after.items():
        assert cost.statements == before[name].statements, name
        assert cost.vm_steps <= (1 + SHARE_MAX) * before[name].vm_steps, name
        assert cost.pages <= (1 + pages_share) * before[name].pages, name


@pytest.mark.slow
def test_payloads_cost_nothing_where_they_are_not_shown(tmp_path: Path) -> None:
    """With values a thousand times as long the same is read: references stand for them.

    A value of 40,000 bytes lies on ten pages. The trees become wider, which costs a page here and
    there; what the list reads is the very same.
    """
    costs: list[Costs] = []
    for value_chars in (40, 40_000):
        bench = Harness(tmp_path / str(value_chars))
        ring = Ring(bench, value_chars=value_chars)
        ring.walk(60)
        costs.append(ring.costs())
        bench.store.close()
    small, large = costs
    assert small["list"] == large["list"]
    assert small["queue"] == large["queue"]
    assert_no_dearer(small, large, pages_share=0.15)


@pytest.mark.slow
def test_history_costs_nothing(tmp_path: Path) -> None:
    """A run of 10,000 events is listed, watched and shown at the cost of a short one.

    Another run is as long from the start on, so that the trees of all are equally deep.
    """
    bench = Harness(tmp_path)
    Ring(bench, "run-0").walk(STEPS_MAX)
    ring = Ring(bench)
    ring.walk(60)
    short = ring.costs()
    ring.walk(300)
    full = ring.costs()
    ring.walk(STEPS_MAX)
    long = ring.costs()
    bench.store.close()
    watched = ("list", "queue", "news", "session")
    assert_no_dearer(short, {name: long[name] for name in watched}, pages_share=0.1)
    # From when their pages are full on.
    assert_no_dearer(full, long, pages_share=0.1)
