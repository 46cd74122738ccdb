"""`pi-workflows.session-message.v1`: what a session is to look for in its branch, or to add to it.

The client protocol, "Session view", "Message choice".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import CARRIED_BYTES_MAX, FOLLOW_UPS_QUEUED_MAX, INLINE_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.follow_up.state import eligible
from pi_workflows.domain.message.state import TurnState, message_state
from pi_workflows.domain.rows import RunStatus
from pi_workflows.domain.session_rows import MessageKind, MessageStatus
from pi_workflows.views.value import Value, embedded

SQL: Final = load(__package__, "session_message.sql")
# A step, a decision, a few notifications and an end, before the prompts that wait for one.
_LOOKED_AT_MAX: Final = 64 + FOLLOW_UPS_QUEUED_MAX
# What may be told while its run is paused: everything that is no work of the run.
_DESPITE_PAUSE: Final = frozenset[MessageKind]({"decision", "notification", "terminal"})
_TURNS: Final = frozenset[MessageKind]({"step", "terminal", "followUp"})


class _Pending(NamedTuple):
    workflow_message_id: str
    kind: MessageKind
    source_id: str
    paused: int


class _Message(NamedTuple):
    workflow_message_id: str
    run_id: str
    target_session_id: str
    kind: MessageKind
    source_id: str
    order_number: int
    status: MessageStatus
    pi_session_entry_id: str | None
    created_at: int
    updated_at: int
    run_status: RunStatus
    paused: int
    content_hash: bytes
    content_media: str
    content_bytes: int
    content: bytes | None


def chosen_message(
    read: Read, session_id: str, turn: TurnState | None, retained_run_id: str | None
) -> dict[str, Json] | None:
    """Return the one message that a session has to do with now.

    Args:
        read: One consistent read.
        session_id: The session.
        turn: Its open turn.
        retained_run_id: The ended run that it still shows.

    Returns:
        The open turn's message; else the oldest that may be told; else the newest one that its
        session holds and still owes work for; else a cancelled step that its branch may hold; else
        the end that is still shown; None when there is none.
    """
    chosen = turn.workflow_message_id if turn is not None else _tellable(read, session_id)
    if chosen is None:
        chosen = read.one(str, SQL["owed"], session_id=session_id)
    if chosen is None:
        chosen = read.one(str, SQL["unreported"], session_id=session_id)
    if chosen is None and retained_run_id is not None:
        chosen = read.one(str, SQL["end"], run_id=retained_run_id)
    return None if chosen is None else _document(read, chosen)


def _tellable(read: Read, session_id: str) -> str | None:
    """Return the oldest message that may be told to a session now."""
    for message in read.all(_Pending, SQL["pending"], session_id=session_id, limit=_LOOKED_AT_MAX):
        if message.kind == "followUp":
            if eligible(read, message_state(read, message.workflow_message_id)):
                return message.workflow_message_id
        elif message.kind in _DESPITE_PAUSE or not message.paused:
            return message.workflow_message_id
    return None


def _document(read: Read, message_id: str) -> dict[str, Json]:
    """Return a message as its session sees it."""
    row = read.one(
        _Message,
        SQL["message"],
        workflow_message_id=message_id,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    assert row is not None, "a message that was chosen"
    content = Value.of(row.content_hash, row.content_media, row.content_bytes, row.content)
    is_passive = row.kind == "terminal" and row.run_status == "cancelled"
    return {
        "schema": "pi-workflows.session-message.v1",
        "workflowMessageId": row.workflow_message_id,
        "runId": row.run_id,
        "targetSessionId": row.target_session_id,
        "kind": row.kind,
        "sourceId": row.source_id,
        "order": row.order_number,
        "status": row.status,
        "piSessionEntryId": row.pi_session_entry_id,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "triggerTurn": row.kind in _TURNS and not is_passive,
        "customType": f"pi-workflows.{row.kind}",
        "display": True,
        "content": embedded(read, content, INLINE_BYTES_MAX),
        "contentDigest": f"sha256:{row.content_hash.hex()}",
        "deliveryCancelled": row.status == "cancelled",
    }
