"""Facts about workflow messages and their turns. They belong to the message's resource."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pi_workflows.domain.fact import Event
from pi_workflows.domain.session_rows import (
    MessageChange,
    MessageRow,
    MessageStatus,
    TurnEnded,
    TurnRow,
)

StepReason: TypeAlias = Literal["initial", "resumed", "reminder"]


class MessageCreated(Event):
    """A session has something to be told. A step says why, a reminder of which ended turn."""

    type: ClassVar[str] = "message.created"

    message: MessageRow
    reason: StepReason | None = None
    reminder_turn_id: str | None = None


class MessageChanged(Event):
    """The parts that every later event of a message has."""

    run_id: str
    message: MessageChange


class MessageSent(MessageChanged):
    """The session's branch holds the message, whatever was thought of it before."""

    type: ClassVar[str] = "message.sent"

    prior_status: MessageStatus


class MessageCancelled(MessageChanged):
    """The message need not be told any more."""

    type: ClassVar[str] = "message.cancelled"


class MessageRecoveryStopped(MessageChanged):
    """Nothing more may be launched by itself from this handoff."""

    type: ClassVar[str] = "message.recovery_stopped"


class TurnStarted(Event):
    """The session's model began to work for a message."""

    type: ClassVar[str] = "turn.started"

    turn: TurnRow


class TurnStopped(Event):
    """The turn is over. One that tells a run's end may stop what was to follow from it."""

    type: ClassVar[str] = "turn.ended"

    run_id: str
    workflow_message_id: str
    turn: TurnEnded
    message: MessageChange | None = None
