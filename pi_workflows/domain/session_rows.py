"""Complete rows of what is about Pi sessions: captures, messages, turns."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_workflows.domain.fact import Integer
from pi_workflows.domain.rows import Row

MessageKind: TypeAlias = Literal["step", "decision", "notification", "terminal", "followUp"]
MessageStatus: TypeAlias = Literal["pending", "sent", "cancelled"]
RecoveryStop: TypeAlias = Literal["cancelled", "timed_out", "interrupted"]
TurnEnd: TypeAlias = Literal["completed", "aborted", "error", "lost"]
SegmentStatus: TypeAlias = Literal["recording", "complete", "failed"]


class SegmentRow(Row):
    """A row of `session_segments`, as it is when the capture begins."""

    segment_id: str
    run_id: str
    attempt_id: str | None
    capture_key: str | None
    session_id: str
    resource_id: str
    binding_hash: str | None
    status: SegmentStatus
    entry_count: Integer
    event_count: Integer
    entry_digest: str
    event_digest: str
    failure_hash: str | None
    created_at: Integer
    finished_at: Integer | None


class SegmentEnd(Row):
    """The end of a capture, with the numbers of what it holds."""

    segment_id: str
    status: Literal["complete", "failed"]
    entry_count: Integer
    event_count: Integer
    failure_hash: str | None
    finished_at: Integer


class EntryLinkRow(Row):
    """A row of `attempt_entries`."""

    attempt_id: str
    role: Literal["prompt", "response", "first", "last"]
    segment_id: str
    entry_id: str


class MessageRow(Row):
    """A row of `workflow_messages`, as it is when the message is made."""

    workflow_message_id: str
    run_id: str
    target_session_id: str
    kind: MessageKind
    source_id: str
    content_hash: str
    order_number: Integer
    status: MessageStatus
    pi_session_entry_id: str | None
    recovery_stop: RecoveryStop | None
    created_at: Integer
    updated_at: Integer
    resource_id: str


class MessageChange(Row):
    """Every column of `workflow_messages` that may change after the message was made."""

    workflow_message_id: str
    status: MessageStatus
    pi_session_entry_id: str | None = None
    recovery_stop: RecoveryStop | None = None


class TurnRow(Row):
    """A row of `workflow_turns`, as it is when the turn starts."""

    workflow_turn_id: str
    workflow_message_id: str
    run_id: str
    target_session_id: str
    state: Literal["started"]
    stop_reason: None
    response_session_entry_id: None
    active_elapsed_ms: Integer
    started_at: Integer
    ended_at: None


class TurnEnded(Row):
    """The end of a turn."""

    workflow_turn_id: str
    stop_reason: TurnEnd
    response_session_entry_id: str | None
    active_elapsed_ms: Integer
    ended_at: Integer
