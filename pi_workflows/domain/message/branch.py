"""What a session's branch holds: the only receipt of a message (the client protocol, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import IdempotencyConflict, Outcome, TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.message import step
from pi_workflows.domain.message.events import MessageSent
from pi_workflows.domain.message.state import (
    SQL,
    MessageState,
    is_known,
    message_state,
    open_turn,
)
from pi_workflows.domain.message.turn import end_of_clock
from pi_workflows.domain.request.state import TOLD_AS_STEP, asked


@dataclass(frozen=True, slots=True)
class ReportBranch(Command):
    """Say what a session's branch holds. The run is that of the message, or of the open turn.

    Attributes:
        session_id: The session.
        message_id: The message that was looked for; None when there is none.
        entry_id: The entry that holds it; None when the branch has none.
        is_idle: The session works on nothing.
        has_pending_messages: Somebody's prompt waits in it.
        elapsed_ms: Active time of the open interval, which a lost turn closes.
    """

    session_id: str
    message_id: str | None
    entry_id: str | None
    is_idle: bool
    has_pending_messages: bool
    elapsed_ms: int = 0


def report_branch(command: ReportBranch, context: Context, read: Read) -> Decided:
    """Decide what a branch proves: a message arrived, a turn was lost, a step is told once more.

    Raises:
        NotFound: There is no such message.
        TransitionDenied: `messageTarget`, it is another session's.
        IdempotencyConflict: `entryReused`, the entry holds another message.
    """
    message = message_state(read, command.message_id) if command.message_id else None
    if message is not None and message.target_session_id != command.session_id:
        raise TransitionDenied(
            f"Message {message.workflow_message_id} is another session's.", code="messageTarget"
        )
    drafts: list[Draft] = []
    blobs: tuple[Blob, ...] = ()
    if message is not None and command.entry_id is not None:
        drafts.extend(_sent(read, command, message))
    if command.is_idle and not command.has_pending_messages:
        drafts.extend(_lost(read, command, context.at_ms))
        if message is not None and command.entry_id is None:
            again, blobs = _once_more(read, message, context.at_ms)
            drafts.extend(again)
    is_present = message is not None and command.entry_id is not None
    receipt: dict[str, Json] = {
        "outcome": "present" if is_present else "absent",
        "workflowMessageId": command.message_id,
    }
    outcome = Outcome.ACCEPTED if drafts else Outcome.ADOPTED
    return Decided(drafts=tuple(drafts), blobs=blobs, receipt=receipt, outcome=outcome)


def _sent(read: Read, command: ReportBranch, message: MessageState) -> list[Draft]:
    """Return that a message arrived, whatever was thought of it before."""
    if message.status == "sent":
        # Another branch may hold a copy; the first one counts.
        return []
    holder = read.one(
        str,
        SQL["message_of_entry"],
        session_id=command.session_id,
        entry_id=command.entry_id,
    )
    if holder is not None:
        raise IdempotencyConflict(
            f"Entry {command.entry_id} holds another message.",
            code="entryReused",
            field="piSessionEntryId",
        )
    event = MessageSent(
        run_id=message.run_id,
        message=message.change("sent", entry_id=command.entry_id),
        prior_status=message.status,
    )
    return [message.draft(event)]


def _lost(read: Read, command: ReportBranch, at_ms: int) -> list[Draft]:
    """Return the end of a turn that nobody works on any more."""
    turn = open_turn(read, command.session_id)
    if turn is None:
        return []
    message = message_state(read, turn.workflow_message_id)
    stopped = end_of_clock(read, message, at_ms, command.elapsed_ms)
    return [turn.ended("lost", at_ms), *stopped]


def _once_more(
    read: Read, message: MessageState, at_ms: int
) -> tuple[list[Draft], tuple[Blob, ...]]:
    """Return a step's new message when the branch lost the one that told it."""
    if message.kind != "step" or message.status != "sent" or message.run_paused:
        return [], ()
    request = asked(read, message.run_id, message.source_id)
    waiting = read.one(int, SQL["pending_of_source"], kind="step", source_id=request.request_id)
    if request.status != "pending" or request.kind not in TOLD_AS_STEP or waiting:
        return [], ()
    key = f"absent:{message.workflow_message_id}"
    if is_known(read, "step", request.request_id, key):
        return [], ()
    told, content = step.told(
        read,
        step.Step(request.request_id, message.run_id, request.target_session_id, request.revision),
        read.blob(request.contract_hash),
        key=key,
        at_ms=at_ms,
        reason="resumed",
    )
    return [told], (content,)
