"""What a Pi session does for its runs: it answers steps, reports turns, publishes progress.

The client protocol, "Session, branch, turns" and "Interactions and decisions".
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pi_workflows.base.limits import PROMPT_CHARS_MAX
from pi_workflows.protocol.wire import (
    AnyJson,
    Id,
    JsonObject,
    Maybe,
    SessionPayload,
    WireModel,
)


class InteractionSubmit(SessionPayload):
    """`interaction.submit`: what a model made of its step."""

    request_id: Id
    submission_id: Id
    value: AnyJson


class AssistantText(WireModel):
    """The visible text that a turn settled with, and the Pi entry that holds it."""

    text: Annotated[str, Field(max_length=PROMPT_CHARS_MAX)]
    session_entry_id: Id


class InteractionAssistant(SessionPayload):
    """`interaction.assistant`: the text of a turn as the output of its step."""

    request_id: Id
    submission_id: Id
    value: AssistantText


class SessionUpdate(WireModel):
    """Progress that a model publishes about its step."""

    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]{0,63}$")]
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
    data: JsonObject


class UpdateValue(WireModel):
    """The value of `interaction.update`."""

    update: SessionUpdate


class InteractionUpdate(SessionPayload):
    """`interaction.update`: progress of a step that a session's model works on."""

    request_id: Id
    value: UpdateValue


class TurnReport(SessionPayload):
    """`workflowTurn.report`: a turn that a session's model takes for a message began or ended.

    `stop_reason` and `response_session_entry_id` belong to the end alone.
    """

    state: Literal["started", "ended"]
    workflow_message_id: Id
    workflow_turn_id: Id
    run_id: Id
    stop_reason: Maybe[Literal["completed", "aborted", "error", "lost"]] = None
    response_session_entry_id: Id | None = None

    @model_validator(mode="after")
    def _ends_for_a_reason(self) -> Self:
        """A turn that ended says why; one that started has no reason yet."""
        if (self.state == "ended") != (self.stop_reason is not None):
            raise PydanticCustomError("turn_reason", "stopReason belongs to an ended turn")
        return self


class ClearTerminal(SessionPayload):
    """`sessionView.clearTerminal`: show an ended run no longer."""


class TurnReported(WireModel):
    """`pi-workflows.workflow-turn-report-receipt.v1`: whose turn it is."""

    schema_id: Annotated[
        Literal["pi-workflows.workflow-turn-report-receipt.v1"], Field(alias="schema")
    ] = "pi-workflows.workflow-turn-report-receipt.v1"
    ownership: Literal["active", "settled", "absent"]
    turn: AnyJson


class TerminalCleared(WireModel):
    """Receipt of `sessionView.clearTerminal`."""

    cleared: bool
    run_id: Maybe[Id] = None
