"""Where a run goes when a node has settled; the server and the runner ask the same function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import EDGE_DELAY_MS_MAX
from pi_workflows.definition.composition import entered
from pi_workflows.definition.paths import ROOT
from pi_workflows.definition.selector import (
    NodeOutcome,
    Scalar,
    Selector,
    case_text,
    parse_selector,
)
from pi_workflows.definition.snapshot import Edge, Snapshot

APPROVAL_STALE: Final = "approvalStale"
"""Why an action fails whose request is another one than a person approved."""

# A value and the cases in an error line: enough to recognize them.
_VALUE_CHARS_MAX = 60
_CASES_CHARS_MAX = 240


@dataclass(frozen=True, slots=True)
class Next:
    """The run enters this node.

    Attributes:
        node_path: The node.
        enters: The mounts that it enters anew on its way, from the outermost.
        delay_ms: Milliseconds that the run waits first, without a runner.
    """

    node_path: str
    enters: tuple[str, ...] = ()
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """The run ends so."""

    outcome: Literal["completed", "failed", "timed_out", "cancelled"]


@dataclass(frozen=True, slots=True)
class Unroutable:
    """The run fails: its switch cannot choose.

    Attributes:
        code: `noCase`, `noValue`, `notScalar` or `delayInvalid`.
        message: One line that names the node, the switch or delay, and what was found.
    """

    code: str
    message: str


Route: TypeAlias = Next | End | Unroutable


def is_approved(subject_digest: bytes, request_digest: bytes) -> bool:
    """Whether an action asks for exactly what was approved (decision "approval bound to content").

    Args:
        subject_digest: SHA-256 of the canonical subject that the decision showed.
        request_digest: SHA-256 of the canonical request of the action's effect.
    """
    return subject_digest == request_digest


def route(
    snapshot: Snapshot,
    node_path: str,
    outcome: NodeOutcome,
    read_output: Callable[[], Json],
    failure_code: str | None = None,
) -> Route:
    """Choose what follows a settled node (the engine contract, section 1.4).

    Args:
        snapshot: A sound definition.
        node_path: The node that settled; one of the snapshot's.
        outcome: How its visit ended, after all retries.
        read_output: Reads the accepted output; called only for an `ok` node whose switch or delay
            looks at it.
        failure_code: Why a node failed. An action whose approval does not hold leads back to the
            decision that it needs, whatever its edges say.

    Returns:
        The next node; the run's end when an `ok` node has no edge, or another outcome no `$result.`
        switch; or why the edge leads nowhere.
    """
    assert node_path in snapshot.nodes, node_path
    edge = snapshot.edge_by_source.get(node_path)
    selector = _selector(edge)
    if outcome == "cancelled":
        return End("cancelled")
    asked = snapshot.nodes[node_path].approved_by
    if asked is not None and outcome == "failed" and failure_code == APPROVAL_STALE:
        return Next(asked)
    if outcome != "ok" and (selector is None or selector.source != "result"):
        return End(outcome)
    if edge is None:
        return End("completed")
    if selector is None:
        assert edge.to is not None, edge
        delay_ms = _delay_ms(edge, read_output)
        if isinstance(delay_ms, Unroutable):
            return delay_ms
        return Next(edge.to, entered(edge.scope or ROOT, edge.to), delay_ms)
    if selector.source == "result":
        return _case(edge, outcome)
    assert edge.on is not None, edge
    found = _select(edge, edge.on, selector, read_output())
    return found if isinstance(found, Unroutable) else _case(edge, found.value)


def _delay_ms(edge: Edge, read_output: Callable[[], Json]) -> int | Unroutable:
    """Return how long the run waits on a plain edge, or why nobody can say."""
    if edge.delay is None or isinstance(edge.delay, int):
        return edge.delay or 0
    selector = parse_selector(edge.delay)
    assert selector is not None, edge
    found = _select(edge, edge.delay, selector, read_output())
    if isinstance(found, Unroutable):
        return found
    value = found.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        delay_ms = int(value) if 0 <= value <= EDGE_DELAY_MS_MAX else -1
        if delay_ms == value >= 0:
            return delay_ms
    shown = _shortened(repr(value), _VALUE_CHARS_MAX)
    return _unroutable(
        "delayInvalid",
        f"{edge.source}: the delay at {edge.delay} is {shown}; use milliseconds, 0 to"
        f" {EDGE_DELAY_MS_MAX}",
    )


@dataclass(frozen=True, slots=True)
class _Found:
    value: Scalar


def _selector(edge: Edge | None) -> Selector | None:
    if edge is None or edge.on is None:
        return None
    selector = parse_selector(edge.on)
    assert selector is not None, edge
    return selector


def _select(edge: Edge, on: str, selector: Selector, value: Json) -> _Found | Unroutable:
    """Return the scalar that the edge looks at, or why there is none."""
    for member in selector.path:
        if not isinstance(value, Mapping) or member not in value:
            return _unroutable("noValue", f"{edge.source}: the output has no value at {on}")
        value = value[member]
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        return _unroutable(
            "notScalar",
            f"{edge.source}: {on} is {kind}; an edge looks at text, numbers or booleans",
        )
    return _Found(value)


def _case(edge: Edge, value: Scalar) -> Next | Unroutable:
    text = case_text(value)
    cases = edge.cases or {}
    target = cases.get(text)
    if target is not None:
        return Next(target, entered(edge.scope or ROOT, target))
    shown = _shortened(repr(text), _VALUE_CHARS_MAX)
    known = _shortened(", ".join(map(repr, sorted(cases))), _CASES_CHARS_MAX)
    return _unroutable("noCase", f"{edge.source}: {edge.on} is {shown}, which is no case ({known})")


def _shortened(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def _unroutable(code: str, message: str) -> Unroutable:
    return Unroutable(code, " ".join(message.split()))
