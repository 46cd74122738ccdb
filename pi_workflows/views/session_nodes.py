"""The nodes of a run as a session's widget lists them: a few rows around the working one.

The client protocol, "Session view". The rows stand in the order in which a run can reach them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    CARRIED_BYTES_MAX,
    SESSION_NODES_BEFORE,
    SESSION_NODES_MAX,
    SESSION_TEXT_BYTES_MAX,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.outline import reached
from pi_workflows.definition.snapshot import Node, Snapshot
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.rows import AttemptStatus
from pi_workflows.domain.run.state import NODE_OUTCOME
from pi_workflows.views.decision import decision_head
from pi_workflows.views.facts import RunFacts
from pi_workflows.views.heads import Head, json_list, last_node
from pi_workflows.views.value import Value

SQL: Final = load(__package__, "session_view.sql")

_CUT: Final = "…"


class _Attempt(NamedTuple):
    attempt_id: str
    status: AttemptStatus
    settings_change_number: int | None
    started_at: int | None
    finished_at: int | None
    error_hash: bytes | None
    error_media: str | None
    error_bytes: int | None
    error_content: bytes | None

    @property
    def error(self) -> Value | None:
        """What went wrong."""
        return Value.of(self.error_hash, self.error_media, self.error_bytes, self.error_content)

    @property
    def duration_ms(self) -> int | None:
        """How long it took by the clock, waiting included."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at


class _Tries(NamedTuple):
    """What was tried at a node.

    Attributes:
        number: How many attempts there were.
        newest: The newest one.
        settled: The newest one that ended, which may be the same.
    """

    number: int = 0
    newest: _Attempt | None = None
    settled: _Attempt | None = None


@dataclass(frozen=True, slots=True)
class NodeWindow:
    """Some of the nodes of a run.

    Attributes:
        start: The index of the first row.
        total: How many nodes the run has.
        rows: The rows.
    """

    start: int
    total: int
    rows: list[Json]


def node_window(
    read: Read, facts: RunFacts, heads: Sequence[Head], snapshot: Snapshot, cursor: int | None
) -> NodeWindow:
    """Return the rows that a session shows.

    Args:
        read: The view's read.
        facts: The run.
        heads: The newest attempt of each node.
        snapshot: The run's definition.
        cursor: The index of the first row; None begins four rows before the working node.

    Returns:
        At most sixteen rows.
    """
    paths = reached(snapshot)
    if cursor is None:
        working = _working(facts, heads)
        at = 0 if working is None else paths.index(working)
        start = max(0, at - SESSION_NODES_BEFORE)
    else:
        start = min(cursor, len(paths) - 1)
    shown = paths[start : start + SESSION_NODES_MAX]
    by_path = {head.node_path: head for head in heads}
    tries = _tries(read, [by_path[path] for path in shown if path in by_path])
    rows: list[Json] = [
        _row(read, facts, path, snapshot.nodes[path], tries.get(path, _Tries())) for path in shown
    ]
    return NodeWindow(start, len(paths), rows)


def clipped(text: str | None) -> str | None:
    """Return a text as a session view holds it: at most 4 KiB in its frame, the cut marked."""
    if text is None or _size_bytes(text) <= SESSION_TEXT_BYTES_MAX:
        return text
    lengths = range(min(len(text), SESSION_TEXT_BYTES_MAX))
    kept = bisect_right(
        lengths, SESSION_TEXT_BYTES_MAX, key=lambda length: _size_bytes(text[:length] + _CUT)
    )
    return text[: kept - 1] + _CUT


def failure_text(read: Read, error: Value | None) -> str | None:
    """Return what people are told of a stored error, clipped."""
    return None if error is None else clipped(Failure.parse(error.load(read)).message)


def _size_bytes(text: str) -> int:
    """Return the bytes of a text as it stands in a frame."""
    return len(canonical.encode(text))


def _working(facts: RunFacts, heads: Sequence[Head]) -> str | None:
    """Return the node that is worked on, or is to be tried again, or was the last one."""
    return facts.node_id or last_node(heads)


def _tries(read: Read, heads: Sequence[Head]) -> dict[str, _Tries]:
    """Return what rows say of the attempts at nodes, by node."""
    ids = {head.attempt_id for head in heads}
    ids |= {head.settled_id for head in heads if head.settled_id is not None}
    found = read.all(
        _Attempt,
        SQL["session_attempts"],
        attempt_ids=json_list(ids),
        carried_bytes=CARRIED_BYTES_MAX,
    )
    attempts = {attempt.attempt_id: attempt for attempt in found}
    return {
        head.node_path: _Tries(
            number=head.attempt_number,
            newest=attempts[head.attempt_id],
            settled=attempts[head.settled_id] if head.settled_id is not None else None,
        )
        for head in heads
    }


def _row(read: Read, facts: RunFacts, path: str, node: Node, tries: _Tries) -> dict[str, Json]:
    """Return the row about a node."""
    newest, settled = tries.newest, tries.settled
    is_current = newest is not None and newest.attempt_id == facts.attempt_id
    is_waiting = is_current and facts.is_request_pending
    return {
        "nodeId": path,
        "nodeType": node.type,
        "actionExecution": node.action_form,
        "state": _state(newest, is_current=is_current, is_waiting=is_waiting),
        "attempts": tries.number,
        "settingsChangeNumber": newest.settings_change_number if newest is not None else None,
        "statusDetail": clipped(facts.status_detail or node.status_detail) if is_current else None,
        "startedAt": newest.started_at if newest is not None and is_current else None,
        "durationMs": settled.duration_ms if settled is not None else None,
        "error": failure_text(read, settled.error) if settled is not None else None,
        "humanDecision": decision_head(read, newest.attempt_id)
        if newest is not None and node.human_decision is not None
        else None,
        "summary": clipped(node.summary) if is_waiting else None,
        "assistantResponse": is_waiting and facts.request_kind == "assistant",
        "outcome": NODE_OUTCOME[settled.status] if settled is not None else None,
    }


def _state(newest: _Attempt | None, *, is_current: bool, is_waiting: bool) -> str:
    """Say where a node is; one whose attempt lost its runner is to be tried again."""
    if newest is None or (not is_current and newest.status not in NODE_OUTCOME):
        return "pending"
    if is_waiting:
        return "waiting"
    if is_current:
        return "running"
    return "ok" if newest.status == "completed" else "failed"
