"""A definition as lines of text that a person reads: what `check` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pi_workflows.definition.composition import entered, exits_of
from pi_workflows.definition.decision import DecisionPolicy
from pi_workflows.definition.paths import ROOT
from pi_workflows.definition.snapshot import AssistantOutput, Edge, Mount, Node, Snapshot

# People know their models by name; the module's part of it is for the digest.
_MODULE: Final = re.compile(r"(?:\w+\.)+(?=\w)")
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def outline(snapshot: Snapshot) -> list[str]:
    """Describe a definition's graph.

    Args:
        snapshot: A sound definition.

    Returns:
        Lines without newline: the workflow, what it includes, then each node in the order in which
        a run can reach it, with its ways out. A way back to a node that leads here is marked as a
        loop, a way into an included workflow by its name. The same definition always gives the same
        lines.
    """
    count = len(snapshot.nodes)
    facts = [
        f"{count} node" if count == 1 else f"{count} nodes",
        *([f"{len(snapshot.mounts)} included"] if snapshot.mounts else ()),
        f"at most {snapshot.max_steps:,} steps",
    ]
    if snapshot.input_model is not None:
        facts.append(f"input {_MODULE.sub('', snapshot.input_model)}")
    if snapshot.contract_id is not None:
        facts.append(f"contract {snapshot.contract_id}")
    lines = [f"{snapshot.name}: {', '.join(facts)}"]
    lines.extend(f"  {mount.path}/ {', '.join(_mount_facts(mount))}" for mount in snapshot.mounts)
    back = _back_ways(snapshot)
    for path in reached(snapshot):
        start = " (start)" if path == snapshot.start_at else ""
        lines.append(f"  {path}{start}: {', '.join(_facts(snapshot.nodes[path]))}")
        edge = snapshot.edge_by_source.get(path)
        lines.extend(f"    leaves {left.mount} by {left.exit}" for left in exits_of(snapshot, path))
        if edge is None:
            lines.append("    ends the run")
        else:
            lines.extend(f"    {way}" for way in _ways(edge, back))
    return lines


def _mount_facts(mount: Mount) -> Iterator[str]:
    yield f"is {mount.workflow_name}"
    yield f"at most {mount.max_steps:,} steps each time"
    if mount.input_model is not None:
        yield f"input {_MODULE.sub('', mount.input_model)}"
    if mount.contract_id is not None:
        yield f"contract {mount.contract_id}"
    for name, way in sorted(mount.exits.items()):
        model = _MODULE.sub("", way.output_model) if way.output_model is not None else "any JSON"
        yield f"exit {name} ({model})"


def _facts(node: Node) -> Iterator[str]:
    yield _form(node)
    if node.summary is not None:
        yield repr(node.summary)
    yield from _agent_facts(node)
    if node.human_decision is not None:
        yield from _decision_facts(node.human_decision)
    if node.effect is not None:
        yield f"effect {node.effect.type} ({node.effect.recovery})"
    if node.approved_by is not None:
        yield f"approved by {node.approved_by}"
    if node.output_model is not None:
        word = "answer" if node.type == "checkpoint" else "output"
        yield f"{word} {_MODULE.sub('', node.output_model)}"
    if node.type == "checkpoint":
        # Its budget is that of building the question; waiting for the answer costs none.
        return
    if node.timeout_ms is None:
        yield "time limit computed"
    elif node.timeout_ms == 0:
        yield "no time limit"
    else:
        yield f"at most {_duration(node.timeout_ms)}"
    if node.retry is not None:
        delay = f" after {_duration(node.retry.delay_ms)}" if node.retry.delay_ms else " at once"
        growth = f", times {node.retry.backoff:g} each" if node.retry.backoff > 1 else ""
        outcomes = " or ".join(node.retry.on)
        yield f"up to {node.retry.max_attempts} tries when {outcomes},{delay}{growth}"


def _form(node: Node) -> str:
    """Return what authors call the form of the node."""
    if node.action_form == "shell":
        return "shell"
    if node.human_decision is not None:
        return "human decision"
    if node.notify_kind is not None:
        return f"{node.notify_kind} notification"
    return "decision" if node.choices is not None else node.type


def _agent_facts(node: Node) -> Iterator[str]:
    if isinstance(node.expected_output, AssistantOutput):
        limit = node.expected_output.max_chars
        yield "output the turn's text" + (f" of at most {limit:,} characters" if limit else "")
    elif node.choices is not None:
        yield f"chooses {' or '.join(node.choices)}"
    elif node.expected_output is not None:
        yield f"output {node.expected_output!r}"
    if node.allowed_tools is not None:
        yield f"tools {', '.join(node.allowed_tools) or 'none'}"
    if node.prompt_chars_max is not None:
        yield f"prompt of at most {node.prompt_chars_max:,} characters"


def _decision_facts(decision: DecisionPolicy) -> Iterator[str]:
    yield f"asks {decision.audience}"
    yield f"chooses {' or '.join(choice.id for choice in decision.choices)}"
    if decision.timeout_ms is not None and decision.default_response is not None:
        default = decision.default_response.choice
        yield f"{default} after {_duration(decision.timeout_ms)}"
    if decision.expires_ms is not None:
        yield f"expires after {_duration(decision.expires_ms)}"


def _duration(ms: int) -> str:
    """Return a duration in its two greatest units, such as `1 h 30 min`."""
    parts: list[str] = []
    for unit, size in _UNITS:
        amount, ms = divmod(ms, size)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 ms"


def _ways(edge: Edge, back: frozenset[tuple[str, str]]) -> Iterator[str]:
    def target(name: str) -> str:
        loop = " (loop)" if (edge.source, name) in back else ""
        mounts = entered(edge.scope or ROOT, name)
        return f"-> {name}{f' (enters {mounts[-1]})' if mounts else ''}{loop}"

    if edge.to is not None:
        yield f"{_delay(edge)}{target(edge.to)}"
    for case, name in sorted((edge.cases or {}).items()):
        yield f"{edge.on} = {case} {target(name)}"


def _delay(edge: Edge) -> str:
    if edge.delay is None:
        return ""
    waits = _duration(edge.delay) if isinstance(edge.delay, int) else f"{edge.delay} ms"
    return f"after {waits} "


def _targets(snapshot: Snapshot, path: str) -> list[str]:
    edge = snapshot.edge_by_source.get(path)
    if edge is None:
        return []
    by_case = sorted((edge.cases or {}).items())
    return [edge.to] if edge.to is not None else list(dict.fromkeys(name for _, name in by_case))


def reached(snapshot: Snapshot) -> list[str]:
    """Return the nodes in the order in which a run can reach them: by distance from the start.

    Args:
        snapshot: A sound definition, in which every node is reached.
    """
    order = {snapshot.start_at: None}
    waiting = [snapshot.start_at]
    for path in waiting:
        for target in _targets(snapshot, path):
            if target not in order:
                order[target] = None
                waiting.append(target)
    return list(order)


def _back_ways(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Return the edges that close a loop, found depth first from the start."""
    found: set[tuple[str, str]] = set()
    above: set[str] = {snapshot.start_at}
    seen: set[str] = {snapshot.start_at}
    stack = [(snapshot.start_at, iter(_targets(snapshot, snapshot.start_at)))]
    while stack:
        path, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            above.discard(path)
            stack.pop()
        elif target in above:
            found.add((path, target))
        elif target not in seen:
            seen.add(target)
            above.add(target)
            stack.append((target, iter(_targets(snapshot, target))))
    return frozenset(found)
