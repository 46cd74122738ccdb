"""The closed set of operations: who may need what, and which model reads the payload.

The client protocol, "Operations". An operation of another set closes the connection that sent it; a
payload that does not fit its model is refused and names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import RUN_ID_CHARS_MAX
from pi_workflows.protocol import (
    coordination,
    decisions,
    effects,
    interactions,
    runs,
    search,
    server,
    sessions,
    settings,
    state,
    views,
    workflows,
)
from pi_workflows.protocol.wire import NoPayload, Payload, is_run_id


class Operation(StrEnum):
    """The name of an operation as it is on the wire."""

    RUN_START = "run.start"
    RUN_PAUSE = "run.pause"
    RUN_RESUME = "run.resume"
    RUN_CANCEL = "run.cancel"
    RUN_RESTART = "run.restart"
    RUN_CHANGE_SETTINGS = "run.changeSettings"
    FOLLOW_UP_QUEUE = "followUp.queue"
    FOLLOW_UP_REMOVE = "followUp.remove"
    RUN_STATUS = "run.status"
    RUN_LIST = "run.list"
    CHECKPOINT_ANSWER = "checkpoint.answer"
    DECISION_ANSWER = "decision.answer"
    OPERATOR_PROVE = "operator.prove"
    VIEW_RUNS_WATCH = "view.runs.watch"
    VIEW_RUNS_PAGE = "view.runs.page"
    VIEW_RUN_GET = "view.run.get"
    VIEW_RUN_WATCH = "view.run.watch"
    VIEW_RUN_UNWATCH = "view.run.unwatch"
    VIEW_SESSION_WATCH = "view.session.watch"
    VIEW_SESSION_WINDOW = "view.session.window"
    VIEW_PAGE = "view.page"
    VIEW_CONTENT = "view.content"
    VIEW_SEARCH = "view.search"
    WORKFLOW_MESSAGE_REPORT_BRANCH = "workflowMessage.reportBranch"
    WORKFLOW_TURN_REPORT = "workflowTurn.report"
    SESSION_VIEW_CLEAR_TERMINAL = "sessionView.clearTerminal"
    INTERACTION_SUBMIT = "interaction.submit"
    INTERACTION_ASSISTANT = "interaction.assistant"
    INTERACTION_UPDATE = "interaction.update"
    SESSION_RECORD = "session.record"
    WORKFLOW_LIST = "workflow.list"
    WORKFLOW_RESOLVE = "workflow.resolve"
    WORKFLOW_CHECK = "workflow.check"
    EFFECT_LIST = "effect.list"
    EFFECT_RESOLVE = "effect.resolve"
    STATE_STATUS = "state.status"
    STATE_VERIFY = "state.verify"
    STATE_BACKUP = "state.backup"
    SERVER_STATUS = "server.status"
    SERVER_STOP = "server.stop"


class OperationClass(StrEnum):
    """How an operation is executed."""

    READ = "R"
    """Changes nothing and stores no receipt."""

    COMMAND = "C"
    """One transaction, which stores its receipt."""

    LONG = "M"
    """Works outside a transaction, outlives its client, and stores its receipt before the reply."""


class Need(StrEnum):
    """Whether an operation takes an optional member of the envelope."""

    NONE = "none"
    """It must be left out."""

    OPTIONAL = "optional"
    """It may be there."""

    REQUIRED = "required"
    """It must be there."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One row of the table.

    Attributes:
        kind: How the operation is executed.
        payload: The model of its payload.
        run_id: Whether it takes `runId`.
        expected_revision: Whether it takes `expectedRevision`, at which the resource must still be:
            the run; the request for answers and submissions; the effect for
            `effect.resolve`.
        names_new_run: `runId` names the run that the operation makes.
        is_session: A session may ask for it too, by naming itself in the payload; without that it
            is a control request.
        any_version: Allowed between different versions of the package.
    """

    kind: OperationClass
    payload: type[Payload]
    run_id: Need = Need.NONE
    expected_revision: Need = Need.NONE
    names_new_run: bool = False
    is_session: bool = False
    any_version: bool = False


_R: Final = OperationClass.READ
_C: Final = OperationClass.COMMAND
_M: Final = OperationClass.LONG
_RUN: Final = Need.REQUIRED
_NO_RUN: Final = Need.NONE

OPERATIONS: Final[Mapping[Operation, Spec]] = {
    Operation.RUN_START: Spec(_C, runs.RunStart, _RUN, names_new_run=True),
    Operation.RUN_PAUSE: Spec(_C, NoPayload, _RUN, Need.OPTIONAL),
    Operation.RUN_RESUME: Spec(_C, NoPayload, _RUN, Need.OPTIONAL),
    Operation.RUN_CANCEL: Spec(_C, NoPayload, _RUN, Need.OPTIONAL),
    Operation.RUN_RESTART: Spec(_C, runs.RunRestart, _RUN, Need.REQUIRED, is_session=True),
    Operation.RUN_CHANGE_SETTINGS: Spec(_M, settings.ChangeSettings, _RUN, is_session=True),
    Operation.FOLLOW_UP_QUEUE: Spec(_C, settings.FollowUpQueue, _RUN, is_session=True),
    Operation.FOLLOW_UP_REMOVE: Spec(_C, settings.FollowUpRemove, _RUN, is_session=True),
    Operation.RUN_STATUS: Spec(_R, NoPayload, _RUN),
    Operation.RUN_LIST: Spec(_R, runs.RunList),
    Operation.CHECKPOINT_ANSWER: Spec(
        _C, runs.CheckpointAnswer, _RUN, Need.OPTIONAL, is_session=True
    ),
    Operation.DECISION_ANSWER: Spec(
        _C, decisions.DecisionAnswer, _RUN, Need.REQUIRED, is_session=True
    ),
    Operation.OPERATOR_PROVE: Spec(_R, decisions.OperatorProve),
    Operation.VIEW_RUNS_WATCH: Spec(_R, views.ViewRunsWatch),
    Operation.VIEW_RUNS_PAGE: Spec(_R, views.ViewRunsPage),
    Operation.VIEW_RUN_GET: Spec(_R, NoPayload, _RUN),
    Operation.VIEW_RUN_WATCH: Spec(_R, views.ViewRunWatch, _RUN),
    Operation.VIEW_RUN_UNWATCH: Spec(_R, views.ViewRunUnwatch),
    Operation.VIEW_SESSION_WATCH: Spec(_R, coordination.ViewSessionWatch),
    Operation.VIEW_SESSION_WINDOW: Spec(_R, coordination.ViewSessionWindow),
    Operation.VIEW_PAGE: Spec(_R, views.ViewPage, _RUN),
    Operation.VIEW_CONTENT: Spec(_R, views.ViewContent, _RUN),
    Operation.VIEW_SEARCH: Spec(_R, search.ViewSearch, _RUN),
    Operation.WORKFLOW_MESSAGE_REPORT_BRANCH: Spec(_R, coordination.ReportBranch, is_session=True),
    Operation.WORKFLOW_TURN_REPORT: Spec(_R, interactions.TurnReport, is_session=True),
    Operation.SESSION_VIEW_CLEAR_TERMINAL: Spec(
        _C, interactions.ClearTerminal, Need.OPTIONAL, is_session=True
    ),
    Operation.INTERACTION_SUBMIT: Spec(
        _C, interactions.InteractionSubmit, _RUN, Need.OPTIONAL, is_session=True
    ),
    Operation.INTERACTION_ASSISTANT: Spec(
        _C, interactions.InteractionAssistant, _RUN, Need.OPTIONAL, is_session=True
    ),
    Operation.INTERACTION_UPDATE: Spec(
        _C, interactions.InteractionUpdate, _RUN, Need.OPTIONAL, is_session=True
    ),
    Operation.SESSION_RECORD: Spec(_M, sessions.SessionRecord, _RUN, is_session=True),
    Operation.WORKFLOW_LIST: Spec(_R, workflows.WorkflowList),
    Operation.WORKFLOW_RESOLVE: Spec(_R, workflows.WorkflowResolve),
    Operation.WORKFLOW_CHECK: Spec(_R, workflows.WorkflowCheck),
    Operation.EFFECT_LIST: Spec(_R, effects.EffectList),
    Operation.EFFECT_RESOLVE: Spec(_C, effects.EffectResolve, _NO_RUN, Need.OPTIONAL),
    Operation.STATE_STATUS: Spec(_R, NoPayload),
    Operation.STATE_VERIFY: Spec(_R, NoPayload),
    Operation.STATE_BACKUP: Spec(_M, state.StateBackup),
    Operation.SERVER_STATUS: Spec(_R, server.ServerStatus, any_version=True),
    Operation.SERVER_STOP: Spec(_C, server.ServerStop, any_version=True),
}


def read_payload(
    operation: Operation,
    payload: Json,
    *,
    run_id: str | None = None,
    expected_revision: int | None = None,
) -> Payload:
    """Check a request's payload and optional members, alike before sending and after receiving.

    Args:
        operation: What is asked for.
        payload: The request's payload, decoded.
        run_id: The envelope's `runId`.
        expected_revision: The envelope's `expectedRevision`.

    Returns:
        The payload as the operation's model.

    Raises:
        PayloadInvalid: With the field: of the payload, or `runId` or `expectedRevision`.
    """
    spec = OPERATIONS[operation]
    _check_member(operation, "runId", run_id, spec.run_id)
    _check_member(operation, "expectedRevision", expected_revision, spec.expected_revision)
    if spec.names_new_run and run_id is not None and not is_run_id(run_id):
        raise PayloadInvalid(
            "runId: must be letters, digits, '.', '_' and '-', at most "
            f"{RUN_ID_CHARS_MAX}, and start with a letter or digit",
            code="runIdInvalid",
            field="runId",
        )
    return spec.payload.parse(payload, field="payload")


def _check_member(operation: Operation, name: str, value: object, need: Need) -> None:
    """Refuse a member that the operation does not take, or needs and did not get."""
    if value is None and need is Need.REQUIRED:
        raise PayloadInvalid(f"{name}: {operation} needs it", field=name)
    if value is not None and need is Need.NONE:
        raise PayloadInvalid(f"{name}: {operation} does not take it", field=name)
