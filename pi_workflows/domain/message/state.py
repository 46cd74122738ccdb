"""What a decision about a message depends on, and the drafts that several decisions share."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final, Literal, NamedTuple

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import NotFound
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.fact import Draft, Event
from pi_workflows.domain.message.events import (
    MessageCancelled,
    MessageCreated,
    StepReason,
    TurnStopped,
)
from pi_workflows.domain.rows import RunStatus
from pi_workflows.domain.session_rows import (
    MessageChange,
    MessageKind,
    MessageRow,
    MessageStatus,
    RecoveryStop,
    TurnEnd,
    TurnEnded,
)

SQL: Final = load(__package__, "reads.sql")
# What a run that ended has no more use for; a notification stays deliverable.
_CLOSED_BY_END: Final = frozenset[MessageKind]({"step", "decision"})


class MessageState(NamedTuple):
    """One message and the run that it is about."""

    workflow_message_id: str
    run_id: str
    target_session_id: str
    kind: MessageKind
    source_id: str
    status: MessageStatus
    pi_session_entry_id: str | None
    recovery_stop: RecoveryStop | None
    run_status: RunStatus
    run_paused: int

    def change(
        self,
        status: MessageStatus | None = None,
        *,
        entry_id: str | None = None,
        stop: RecoveryStop | None = None,
    ) -> MessageChange:
        """Return the message's changeable columns, with these replaced."""
        return MessageChange(
            workflow_message_id=self.workflow_message_id,
            status=status or self.status,
            pi_session_entry_id=entry_id or self.pi_session_entry_id,
            recovery_stop=stop or self.recovery_stop,
        )

    def draft(self, event: Event) -> Draft:
        """Return an event of this message's own resource."""
        return Draft("message", self.workflow_message_id, event, self.run_id)


class TurnState(NamedTuple):
    """One turn of a session's model."""

    workflow_turn_id: str
    workflow_message_id: str
    run_id: str
    target_session_id: str
    state: Literal["started", "ended"]
    stop_reason: TurnEnd | None
    response_session_entry_id: str | None
    active_elapsed_ms: int
    started_at: int
    ended_at: int | None

    def ended(
        self,
        reason: TurnEnd,
        at_ms: int,
        *,
        response_entry_id: str | None = None,
        elapsed_ms: int = 0,
        message: MessageChange | None = None,
    ) -> Draft:
        """Return the end of this open turn, and what it changes in its message.

        Its active time is never below the last sample.
        """
        event = TurnStopped(
            run_id=self.run_id,
            workflow_message_id=self.workflow_message_id,
            turn=TurnEnded(
                workflow_turn_id=self.workflow_turn_id,
                stop_reason=reason,
                response_session_entry_id=response_entry_id,
                active_elapsed_ms=max(self.active_elapsed_ms, elapsed_ms),
                ended_at=at_ms,
            ),
            message=message,
        )
        return Draft("message", self.workflow_message_id, event, self.run_id)


def message_state(read: Read, workflow_message_id: str) -> MessageState:
    """Return a message. Raises NotFound (`messageMissing`) when there is none of that name."""
    state = read.one(MessageState, SQL["message"], workflow_message_id=workflow_message_id)
    if state is None:
        raise NotFound(
            f"There is no message {workflow_message_id}.",
            code="messageMissing",
            field="workflowMessageId",
        )
    return state


def open_turn(read: Read, session_id: str) -> TurnState | None:
    """Return the turn that a session's model takes now, or None."""
    return read.one(TurnState, SQL["open_turn"], session_id=session_id)


def is_known(read: Read, kind: MessageKind, source_id: str, key: str) -> bool:
    """Whether a source has made its message under this key already."""
    found = read.one(
        str, SQL["message_known"], workflow_message_id=ids.message_id(kind, source_id, key)
    )
    return found is not None


def created(
    read: Read,
    *,
    run_id: str,
    session_id: str,
    kind: MessageKind,
    source_id: str,
    key: str,
    content: Blob,
    at_ms: int,
    offset: int = 0,
    reason: StepReason | None = None,
    reminder_turn_id: str | None = None,
) -> Draft:
    """Return a new message for a session, the last in its order.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run that tells it; an interactive one.
        session_id: The run's session.
        kind: What it is.
        source_id: What it tells: a request, a decision, a visit, a run or a follow-up.
        key: Names it among the messages of its source; the caller keeps content under `blobs`.
        content: The text that Pi adds to the branch.
        at_ms: When it is decided.
        offset: How many messages of the session the same command makes before it.
        reason: Why a step is told.
        reminder_turn_id: The ended turn that a reminder is about.

    Returns:
        The event of the new message's resource.
    """
    newest = read.one(int, SQL["newest_order"], session_id=session_id) or 0
    message_id = ids.message_id(kind, source_id, key)
    row = MessageRow(
        workflow_message_id=message_id,
        run_id=run_id,
        target_session_id=session_id,
        kind=kind,
        source_id=source_id,
        content_hash=content.hex,
        order_number=newest + 1 + offset,
        status="pending",
        pi_session_entry_id=None,
        recovery_stop=None,
        created_at=at_ms,
        updated_at=at_ms,
        resource_id=ids.resource_id("message", message_id),
    )
    event = MessageCreated(message=row, reason=reason, reminder_turn_id=reminder_turn_id)
    return Draft("message", message_id, event, run_id)


def cancelled(
    read: Read, run_id: str, *, kinds: AbstractSet[MessageKind], source_id: str | None = None
) -> list[Draft]:
    """Return the end of a run's messages that wait to be told.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        kinds: Which kinds of them.
        source_id: Of this source only; None for every one.

    Returns:
        One event for each.
    """
    found = read.all(MessageState, SQL["pending_of_run"], run_id=run_id)
    return [
        message.draft(MessageCancelled(run_id=message.run_id, message=message.change("cancelled")))
        for message in found
        if message.kind in kinds and source_id in (None, message.source_id)
    ]


def lost_turns(read: Read, run_id: str, at_ms: int) -> list[Draft]:
    """Return the end of a run's open turn that nobody will report in time."""
    found = read.all(TurnState, SQL["open_turns_of_run"], run_id=run_id)
    return [turn.ended("lost", at_ms) for turn in found]


def closed_by_end(read: Read, run_id: str, at_ms: int) -> list[Draft]:
    """Return what a run's end closes in its session (state contract, "Terminal").

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        at_ms: When it ends.

    Returns:
        The pending step and decision messages cancelled, the open turn ended `lost`.
    """
    return [*cancelled(read, run_id, kinds=_CLOSED_BY_END), *lost_turns(read, run_id, at_ms)]
