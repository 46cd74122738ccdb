"""`pi-workflows.session-view.v1`: what a Pi session works on now, in one small document.

The client protocol, "Session view". Everything comes from one read and none of it grows with the
run; who coordinates the session is a fact of the server, which it adds for each watcher.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    SESSION_DETAIL_BYTES_MAX,
    SESSION_UPDATES_MAX,
    TERMINAL_RETAINED_MS,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message.state import open_turn
from pi_workflows.domain.message.turn import turn_document
from pi_workflows.domain.rows import RunStatus
from pi_workflows.domain.session_rows import MessageStatus
from pi_workflows.views.content import stored_value
from pi_workflows.views.facts import ProcessFacts, RunFacts, run_facts
from pi_workflows.views.heads import node_heads
from pi_workflows.views.pages import newest_updates, update_rows
from pi_workflows.views.request import interaction
from pi_workflows.views.session_message import chosen_message
from pi_workflows.views.session_nodes import clipped, node_window
from pi_workflows.views.value import embedded

SQL: Final = load(__package__, "session_view.sql")


class Binding(NamedTuple):
    """Where a run came from; an interactive one reserves its session."""

    origin_session_id: str
    execution_mode: Literal["interactive", "headless"]


class Coordination(NamedTuple):
    """What a watcher is told of the session's coordinator.

    Attributes:
        epoch: The epoch of whoever coordinates it; None when nobody does.
        is_own: Whether that is the watcher's own connection.
        needs_report: Whether the coordinator has not reported its branch.
    """

    epoch: int | None = None
    is_own: bool = False
    needs_report: bool = False


@dataclass(frozen=True, slots=True)
class SessionWork:
    """The work of a session, encoded once for everybody who watches it.

    Attributes:
        session_id: The session.
        run: `pi-workflows.session-run-view.v1` as canonical bytes; None when it has no run.
        interaction: The question that its run asks as canonical bytes; None when it asks nothing.
        message: `pi-workflows.session-message.v1`, what the session is to look for in its branch or
            to add to it; None when there is nothing.
        turn: `pi-workflows.workflow-turn.v1`, the turn that is open; None when none is.
    """

    session_id: str
    run: bytes | None = None
    interaction: bytes | None = None
    message: bytes | None = None
    turn: bytes | None = None

    def document(self, coordination: Coordination) -> dict[str, Json]:
        """Return the session view for a watcher."""
        return {
            "schema": "pi-workflows.session-view.v1",
            "sessionId": self.session_id,
            "run": _fragment(self.run),
            "interaction": _fragment(self.interaction),
            "workflowMessage": _fragment(self.message),
            "openWorkflowTurn": _fragment(self.turn),
            "coordinatorEpoch": coordination.epoch,
            "coordinatorActive": coordination.is_own,
            "branchReportRequired": coordination.needs_report,
        }


class _End(NamedTuple):
    run_id: str
    run_status: RunStatus
    status: MessageStatus
    turns: int
    open_turns: int
    ended_at: int | None


def run_binding(read: Read, run_id: str) -> Binding | None:
    """Return where a run came from; None when there is no such run."""
    return read.one(Binding, SQL["run_binding"], run_id=run_id)


def session_of_run(read: Read, run_id: str) -> str | None:
    """Return the session that a run reserves while it lasts; None when it reserves none."""
    binding = run_binding(read, run_id)
    if binding is None or binding.execution_mode != "interactive":
        return None
    return binding.origin_session_id


def session_work(
    read: Read,
    session_id: str,
    process: ProcessFacts,
    node_cursor: int | None = None,
    cleared: str | None = None,
) -> SessionWork:
    """Return what a session works on: its interactive run that has not ended, or the last end.

    Args:
        read: One consistent read.
        session_id: The session; one that never had a run works on nothing.
        process: What lives now.
        node_cursor: The index of the first node shown; None follows the working node.
        cleared: The ended run that the session shows no longer; None when there is none.

    Returns:
        The work.
    """
    current = read.one(str, SQL["session_run"], session_id=session_id)
    retained = None
    if current is None:
        retained = retained_run(read, session_id, process.now_ms)
        current = retained if retained != cleared else None
    turn = open_turn(read, session_id)
    message = chosen_message(read, session_id, turn, None if retained == cleared else retained)
    work = SessionWork(
        session_id=session_id,
        message=None if message is None else canonical.encode(message),
        turn=None if turn is None else canonical.encode(turn_document(turn)),
    )
    if current is None:
        return work
    facts = run_facts(read, current)
    question = None
    if facts.is_request_pending and facts.request_id is not None:
        question = interaction(read, facts.request_id, SESSION_DETAIL_BYTES_MAX)
    return replace(
        work,
        run=canonical.encode(_run(read, facts, process, node_cursor)),
        interaction=None if question is None else canonical.encode(question),
    )


def retained_run(read: Read, session_id: str, now_ms: int) -> str | None:
    """Return the ended run that a session still shows (the client protocol, "Session view").

    Args:
        read: One consistent read.
        session_id: The session; it has no run that goes on.
        now_ms: Wall time.

    Returns:
        The run whose end is the session's newest, while the session is to be told of it, while it
        looks at it for the first time, and a minute after that; else None.
    """
    end = read.one(_End, SQL["newest_end"], session_id=session_id)
    if end is None:
        return None
    is_owed = end.turns == 0 and end.run_status != "cancelled"
    is_new = end.status == "pending" or is_owed or end.open_turns > 0
    is_recent = end.ended_at is not None and now_ms - end.ended_at < TERMINAL_RETAINED_MS
    return end.run_id if is_new or is_recent else None


def _run(
    read: Read, facts: RunFacts, process: ProcessFacts, node_cursor: int | None
) -> dict[str, Json]:
    """Return `pi-workflows.session-run-view.v1`."""
    error_hash = facts.error_hash or facts.queue_error_hash
    error = stored_value(read, error_hash) if error_hash is not None else None
    message = None if error is None else Failure.parse(error.load(read)).message
    display = facts.display(process, message)
    controls: list[Json] = list(display.controls)
    snapshot = read.document(Snapshot.parse, facts.definition_hash)
    heads = node_heads(read, facts.run_id, snapshot.nodes)
    nodes = node_window(read, facts, heads, snapshot, node_cursor)
    queue = facts.queue().document()
    return {
        "schema": "pi-workflows.session-run-view.v1",
        "runId": facts.run_id,
        "revision": facts.revision,
        "runRevision": facts.run_revision,
        "queue": {**queue, "workflowSourceRef": clipped(facts.workflow_ref)},
        "display": {
            "status": display.status,
            "activity": display.activity,
            "controls": controls,
            "reason": clipped(display.reason),
        },
        "workflowName": facts.workflow_name,
        "runTitle": facts.title,
        "paused": facts.paused == 1,
        "currentNode": None if facts.is_request_pending else facts.node_id,
        "waitingOn": facts.node_id if facts.is_request_pending else None,
        "error": clipped(message),
        "nodes": nodes.rows,
        "nodeStart": nodes.start,
        "nodeTotal": nodes.total,
        "progressUpdates": _progress(read, facts.run_id),
        # No workflow is watched by a monitor.
        "monitorEstimate": None,
        "monitorSchedule": None,
        "live": display.is_live,
        "possiblyInterrupted": display.is_possibly_interrupted,
    }


def _progress(read: Read, run_id: str) -> list[Json]:
    """Return what was last published under each type and key, the newest sixteen of them."""
    listed = newest_updates(read, run_id)
    rows = update_rows(read, listed[-SESSION_UPDATES_MAX:])
    return [
        {
            "type": row.update_type,
            "key": row.update_key,
            "at": row.recorded_at,
            "data": embedded(read, row.data, SESSION_DETAIL_BYTES_MAX),
        }
        for row in rows
    ]


def _fragment(content: bytes | None) -> Json:
    """Return encoded bytes as they stand in a document."""
    return None if content is None else canonical.fragment(content)
