"""Where a run has been: the newest step of each node and the transitions that led there.

A transition is shown when it is the last way into a node or the last way out of one. A loop thus
costs no more than a line, and what is shown is exact for the attempts that are shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PAGE_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.run.state import NODE_OUTCOME
from pi_workflows.views.heads import SQL, Head, json_list
from pi_workflows.views.items import Settled
from pi_workflows.views.page import Page, around, window

_NO_STEP: Final = -1


class _Settled(NamedTuple):
    """An attempt; it has no step when it ended with its run."""

    attempt_id: str
    visit_number: int
    attempt_number: int
    step_index: int | None


class _GraphStep(NamedTuple):
    attempt_id: str
    node_id: str
    node_type: str
    visit_number: int
    attempt_number: int
    status: Settled
    started_at: int | None
    finished_at: int | None
    step_index: int | None


class _Place(NamedTuple):
    step_index: int
    node_path: str


class _Entry(NamedTuple):
    node_path: str
    step_index: int | None


@dataclass(frozen=True, slots=True)
class Graph:
    """What a graph shows at one step.

    Attributes:
        cursor: Index of the newest step that it shows; 0 before the first.
        steps: The newest step of each node, in their order.
        transitions: `from->to`, in text order: those that fit.
        transition_start: The index of the first one.
        transition_total: How many there are.
    """

    cursor: int
    steps: Page
    transitions: tuple[str, ...]
    transition_start: int
    transition_total: int


@dataclass(frozen=True, slots=True)
class _Node:
    """A node as the graph shows it.

    Attributes:
        path: The node.
        visit_number: Its newest visit.
        attempt_number: That visit's newest attempt.
        settled: Its newest settled attempt, of this visit or of an earlier one.
    """

    path: str
    visit_number: int
    attempt_number: int
    settled: _Settled | None


def live_graph(
    read: Read,
    run_id: str,
    heads: Sequence[Head],
    step_total: int,
    bytes_max: int = PAGE_BYTES_MAX,
) -> Graph:
    """Return the graph of a run as it stands.

    Args:
        read: The view's read.
        run_id: The run.
        heads: The newest attempt of each node.
        step_total: How many steps the run has.
        bytes_max: Bytes of each of the two pages.

    Returns:
        The graph.
    """
    nodes = [
        _Node(head.node_path, head.visit_number, head.attempt_number, _settled(head))
        for head in heads
    ]
    return _graph(read, run_id, nodes, step_total, bytes_max)


def graph_at(
    read: Read,
    run_id: str,
    heads: Sequence[Head],
    step_index: int,
    bytes_max: int = PAGE_BYTES_MAX,
) -> Graph:
    """Return the graph of a run as it stood when a step settled.

    Args:
        read: The view's read.
        run_id: The run.
        heads: The newest attempt of each node.
        step_index: The step.
        bytes_max: Bytes of each of the two pages.

    Returns:
        The graph.
    """
    found = [(head.node_path, _settled_at(read, run_id, head, step_index)) for head in heads]
    nodes = [
        _Node(path, settled.visit_number, settled.attempt_number, settled)
        for path, settled in found
        if settled is not None
    ]
    return _graph(read, run_id, nodes, step_index + 1, bytes_max)


def _settled(head: Head) -> _Settled | None:
    """Return the newest settled attempt of a node, or None."""
    if head.settled_id is None or head.settled_visit is None or head.settled_number is None:
        return None
    return _Settled(head.settled_id, head.settled_visit, head.settled_number, head.step_index)


def _settled_at(read: Read, run_id: str, head: Head, step_index: int) -> _Settled | None:
    """Return a node's newest step up to an index: attempts settle in the order of their numbers."""
    newest = _settled(head)
    if newest is not None and newest.step_index is not None and newest.step_index <= step_index:
        return newest

    def settled(number: int) -> _Settled | None:
        return read.one(
            _Settled,
            SQL["settled_up_to"],
            run_id=run_id,
            node_path=head.node_path,
            attempt_number=number,
        )

    def place(number: int) -> int:
        found = settled(number)
        return _NO_STEP if found is None or found.step_index is None else found.step_index

    count = bisect_right(range(1, head.attempt_number + 1), step_index, key=place)
    return settled(count) if count else None


def _graph(
    read: Read, run_id: str, nodes: Sequence[_Node], step_count: int, bytes_max: int
) -> Graph:
    """Return the graph of nodes whose newest steps are known."""
    shown = [node.settled.attempt_id for node in nodes if node.settled is not None]
    rows = read.all(_GraphStep, SQL["graph_steps"], attempt_ids=json_list(shown))
    rows.sort(key=lambda row: step_count if row.step_index is None else row.step_index)
    ways = _transitions(read, run_id, nodes, step_count)
    shown_rows = [rows[index] for index in window(len(rows), None)]
    shown_ways: list[Json] = [ways[index] for index in window(len(ways), None)]
    page = around(len(ways), None, shown_ways, bytes_max)
    return Graph(
        cursor=max(0, step_count - 1),
        steps=around(len(rows), None, [_step(row) for row in shown_rows], bytes_max),
        transitions=tuple(ways[page.start : page.start + len(page.items)]),
        transition_start=page.start,
        transition_total=page.total,
    )


def _step(row: _GraphStep) -> dict[str, Json]:
    """Return a step without its values."""
    return {
        "attemptId": row.attempt_id,
        "nodeId": row.node_id,
        "nodeType": row.node_type,
        "visit": row.visit_number,
        "attemptNumber": row.attempt_number,
        "outcome": NODE_OUTCOME[row.status],
        "startedAt": row.started_at,
        "finishedAt": row.finished_at,
        "prompt": None,
        "output": None,
    }


def _transitions(read: Read, run_id: str, nodes: Sequence[_Node], step_count: int) -> list[str]:
    """Return the last way into and the last way out of each node."""
    entries = _entries(read, run_id, nodes)
    before = {node.path: entries.get(node.path, step_count) - 1 for node in nodes}
    after = {
        node.path: node.settled.step_index + 1
        for node in nodes
        if node.settled is not None and node.settled.step_index is not None
    }
    wanted = {at for at in (*before.values(), *after.values()) if 0 <= at < step_count}
    found = read.all(_Place, SQL["steps_at"], run_id=run_id, step_indexes=json_list(sorted(wanted)))
    places = {place.step_index: place.node_path for place in found}
    return sorted(
        {f"{places[at]}->{path}" for path, at in before.items() if at in places}
        | {f"{path}->{places[at]}" for path, at in after.items() if at in places}
    )


def _entries(read: Read, run_id: str, nodes: Sequence[_Node]) -> dict[str, int]:
    """Return the step with which each node's newest visit began, where it has one."""
    visits: list[Json] = [[node.path, node.visit_number, node.attempt_number] for node in nodes]
    found = read.all(
        _Entry, SQL["first_steps"], run_id=run_id, visits=canonical.encode(visits).decode()
    )
    return {entry.node_path: entry.step_index for entry in found if entry.step_index is not None}
