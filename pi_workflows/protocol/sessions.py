"""Recording a Pi session for a run: the payload of `session.record`, and its receipts.

The client protocol, sections 4 and 11. Records are idempotent by capture and number: a recorder
whose reply was lost sends them again.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pi_workflows.base.limits import ERROR_CHARS_MAX, SESSION_WORD_CHARS_MAX
from pi_workflows.protocol.wire import (
    AbsolutePath,
    Count,
    Id,
    JsonObject,
    Many,
    Maybe,
    Number,
    SessionPayload,
    Text,
    WireModel,
)

RecordAction: TypeAlias = Literal["status", "bind", "entries", "events", "capture"]
"""What a recorder does."""

# The member that belongs to each action.
_MEMBERS: Final[dict[RecordAction, str]] = {
    "bind": "binding",
    "entries": "entries",
    "events": "events",
    "capture": "capture",
}


class SessionBinding(WireModel):
    """Which Pi session is captured. The run and the time are the server's to say."""

    pi_session_id: Id
    cwd: AbsolutePath


class SessionEntry(WireModel):
    """A settled entry as Pi wrote it, under its number in the capture."""

    seq: Number
    entry: JsonObject


class SessionEvent(WireModel):
    """A session event, under its number in the capture.

    Attributes:
        seq: From 1, without a gap.
        at: Wall time in milliseconds at which the recorder saw it; it paces a playback.
        type: Its kind.
        payload: What that kind has.
    """

    seq: Number
    at: Count
    node_id: Maybe[Id] = None
    attempt_id: Maybe[Id] = None
    turn_id: Maybe[Id] = None
    message_id: Maybe[Id] = None
    tool_call_id: Maybe[Id] = None
    type: Text
    payload: JsonObject


class CaptureFailure(WireModel):
    """Why a capture failed."""

    failed_at: Count
    code: Annotated[str, StringConstraints(min_length=1, max_length=SESSION_WORD_CHARS_MAX)]
    message: Annotated[str, StringConstraints(min_length=1, max_length=ERROR_CHARS_MAX)]


class SessionCapture(WireModel):
    """The end of a capture, with what the recorder has sent: `pi-workflows.session-capture.v1`."""

    schema_id: Annotated[Literal["pi-workflows.session-capture.v1"], Field(alias="schema")] = (
        "pi-workflows.session-capture.v1"
    )
    event_schema: Literal["pi-workflows.session-event.v1"] = "pi-workflows.session-event.v1"
    status: Literal["complete", "failed"]
    event_count: Count
    entry_count: Count
    last_event_seq: Count
    failure: Maybe[CaptureFailure] = None

    @model_validator(mode="after")
    def _failed_for_a_reason(self) -> Self:
        """A capture says why exactly when it failed."""
        if (self.status == "failed") != (self.failure is not None):
            raise PydanticCustomError("capture_failure", "failed and failure go together")
        return self


class SessionRecord(SessionPayload):
    """`session.record`: one step of a recorder.

    Attributes:
        action: What it does; the member of that name, if it has one, comes with it.
        attempt_id: Which of the run's captures: the one of that attempt, or of another key of the
            recorder's; without it the run's own.
    """

    action: RecordAction
    attempt_id: Maybe[Id] = None
    binding: Maybe[SessionBinding] = None
    entries: Maybe[Annotated[Many[SessionEntry], Field(min_length=1)]] = None
    events: Maybe[Annotated[Many[SessionEvent], Field(min_length=1)]] = None
    capture: Maybe[SessionCapture] = None

    @model_validator(mode="after")
    def _has_its_member(self) -> Self:
        """Each action has its own member and no other."""
        parts = {"binding": self.binding, "entries": self.entries, "events": self.events}
        given = {name for name, value in {**parts, "capture": self.capture}.items() if value}
        wanted = {_MEMBERS[self.action]} if self.action in _MEMBERS else set[str]()
        if given != wanted:
            named = next(iter(wanted), "no other member")
            raise PydanticCustomError(
                "record_member",
                "{action} goes with {named}",
                {"action": self.action, "named": named},
            )
        return self


class SessionRecorded(WireModel):
    """Receipt of `session.record`. `entry_sequence` is the number of the last entry stored."""

    run_id: Id
    action: RecordAction
    attempt_id: Maybe[Id] = None
    entry_sequence: Maybe[Count] = None


class SessionStanding(WireModel):
    """Receipt of `session.record` with the action `status`: how far a capture has come."""

    run_id: Id
    action: Literal["status"] = "status"
    attempt_id: Maybe[Id] = None
    bound: bool
    event_count: Count
    entry_count: Count
    last_event_seq: Count
