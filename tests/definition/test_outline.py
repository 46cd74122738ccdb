"""A definition as a person reads it."""

from __future__ import annotations

import pytest

from pi_workflows.definition.outline import outline
from pi_workflows.definition.snapshot import (
    Edge,
    EffectPolicy,
    Node,
    RetryPolicy,
    Snapshot,
)

READ = EffectPolicy(type="repo.read", recovery="idempotent")
SNAPSHOT = Snapshot(
    name="repair",
    contract_id="org.example:repair",
    input_model="repair_workflow.Task",
    start_at="look",
    max_steps=1_000,
    nodes={
        "send": Node(
            type="action",
            action_form="function",
            effect=EffectPolicy(type="mail.send", recovery="manual"),
            timeout_ms=0,
        ),
        "look": Node(
            type="action",
            action_form="shell",
            effect=READ,
            timeout_ms=5_400_000,
            retry=RetryPolicy(max_attempts=3, on=("failed",), delay_ms=1_500, backoff=2.0),
        ),
        "list": Node(type="compute", output_model="list[repair_workflow.Finding]"),
        "ask": Node(type="checkpoint", summary="Go on?", output_model="repair_workflow.Answer"),
    },
    edges=(
        Edge(source="ask", on="$.ok", cases={"true": "send", "false": "look"}),
        Edge(source="list", to="ask", delay=90_000),
        Edge(source="look", to="list", delay="$.wait_ms"),
    ),
)


def test_an_outline_shows_the_graph_in_running_order() -> None:
    """Nodes come by distance from the start, with their limits, effects, ways out and loops."""
    assert outline(SNAPSHOT) == [
        "repair: 4 nodes, at most 1,000 steps, input Task, contract org.example:repair",
        (
            "  look (start): shell, effect repo.read (idempotent), at most 1 h 30 min,"
            " up to 3 tries when failed, after 1 s 500 ms, times 2 each"
        ),
        "    after $.wait_ms ms -> list",
        "  list: compute, output list[Finding], time limit computed",
        "    after 1 min 30 s -> ask",
        "  ask: checkpoint, 'Go on?', answer Answer",
        "    $.ok = false -> look (loop)",
        "    $.ok = true -> send",
        "  send: action, effect mail.send (manual), no time limit",
        "    ends the run",
    ]


def test_an_outline_does_not_depend_on_the_order_of_writing() -> None:
    """The same definition gives the same lines, however its nodes and edges are ordered."""
    turned = SNAPSHOT.model_copy(
        update={
            "nodes": dict(reversed(SNAPSHOT.nodes.items())),
            "edges": tuple(reversed(SNAPSHOT.edges)),
        }
    )
    assert outline(turned) == outline(SNAPSHOT)


@pytest.mark.parametrize("count", [1, 4_000])
def test_long_chains_have_an_outline(count: int) -> None:
    """The depth of a graph is bounded by its nodes alone, not by the stack."""
    nodes = {f"n{i}": Node(type="compute", timeout_ms=0) for i in range(count)}
    edges = tuple(Edge(source=f"n{i}", to=f"n{(i + 1) % count}") for i in range(count))
    lines = outline(Snapshot(name="x", start_at="n0", max_steps=1, nodes=nodes, edges=edges))
    assert len(lines) == 1 + 2 * count
    assert [line for line in lines if line.endswith("(loop)")] == ["    -> n0 (loop)"]
