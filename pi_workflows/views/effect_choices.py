"""What each answer about an ambiguous effect would do, told before it is given."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pi_workflows.definition.route import Next, Unroutable, route
from pi_workflows.definition.selector import NodeOutcome, parse_selector
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.protocol.effects import EffectChoice

REJECTED: Final = "effectRejected"
"""Why a node fails whose effect somebody rejected."""


class _Course(NamedTuple):
    """What becomes of a run, and where it goes if that is known."""

    run: Literal["goesOn", "completed", "failed", "unchanged"]
    next_node: str | None = None


def effect_choices(
    snapshot: Snapshot, node_path: str, *, attempts: int, is_over: bool
) -> tuple[EffectChoice, ...]:
    """Return what `confirm`, `retry` and `reject` would do.

    The decider `resolve_effect` and the route say the same when the answer is there.

    Args:
        snapshot: The run's definition.
        node_path: The node whose effect it is.
        attempts: How often the effect was tried.
        is_over: Whether the run has ended.
    """
    node = snapshot.nodes[node_path]
    done = _course(snapshot, node_path, "ok", is_over=is_over)
    refused = _course(snapshot, node_path, "failed", is_over=is_over)
    again = _Course("unchanged") if is_over else _Course("goesOn", node_path)
    return (
        EffectChoice(
            action="confirm",
            status="applied",
            run=done.run,
            next_node=done.next_node,
            needs_result=node.output_model if node.needs_own_result else None,
        ),
        EffectChoice(
            action="retry",
            status="pending",
            run=again.run,
            next_node=again.next_node,
            attempt=None if is_over else attempts + 1,
            refused="runTerminal" if is_over else None,
        ),
        EffectChoice(
            action="reject", status="rejected", run=refused.run, next_node=refused.next_node
        ),
    )


def _course(snapshot: Snapshot, node_path: str, outcome: NodeOutcome, *, is_over: bool) -> _Course:
    """Return what becomes of the run when the node ends so."""
    if is_over:
        return _Course("unchanged")
    edge = snapshot.edge_by_source.get(node_path)
    if outcome == "ok" and edge is not None and edge.to is not None:
        return _Course("goesOn", edge.to)
    selector = parse_selector(edge.on) if edge is not None and edge.on is not None else None
    if outcome == "ok" and selector is not None and selector.source == "output":
        # Where to depends on an output that nobody has yet.
        return _Course("goesOn")
    code = None if outcome == "ok" else REJECTED
    chosen = route(snapshot, node_path, outcome, lambda: None, code)
    if isinstance(chosen, Next):
        return _Course("goesOn", chosen.node_path)
    if isinstance(chosen, Unroutable) or chosen.outcome != "completed":
        return _Course("failed")
    return _Course("completed")
