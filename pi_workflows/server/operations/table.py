"""Which function answers which operation, and what is checked before it does.

The order of checks: the connection's authority first, then the receipt of an earlier request, the
payload, and in the writer's transaction epoch, revision, claim and transition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from pi_workflows.base.errors import Corrupt, PayloadInvalid, Unavailable
from pi_workflows.protocol.envelope import Request, Response
from pi_workflows.protocol.operations import OPERATIONS, Operation, OperationClass, read_payload
from pi_workflows.protocol.reply import Reply
from pi_workflows.server.authority import actor_for, session_claim, speaker_of
from pi_workflows.server.operations import (
    checkpoints,
    coordination,
    decisions,
    effects,
    follow_ups,
    interactions,
    runs,
    server,
    sessions,
    settings,
    state,
    views,
    workflows,
)
from pi_workflows.server.operations.call import Call, known, response
from pi_workflows.server.operations.own_run import require_own_run
from pi_workflows.server.services import Services
from pi_workflows.server.session import Session
from pi_workflows.server.writer import stopping

Handler: TypeAlias = Callable[[Services, Call], Awaitable[Reply]]

HANDLERS: Final[Mapping[Operation, Handler]] = {
    Operation.RUN_START: runs.start,
    Operation.RUN_PAUSE: runs.pause,
    Operation.RUN_RESUME: runs.resume,
    Operation.RUN_CANCEL: runs.cancel,
    Operation.RUN_RESTART: runs.restart,
    Operation.RUN_CHANGE_SETTINGS: settings.change_settings,
    Operation.FOLLOW_UP_QUEUE: follow_ups.queue,
    Operation.FOLLOW_UP_REMOVE: follow_ups.remove,
    Operation.RUN_STATUS: views.run_get,
    Operation.RUN_LIST: views.run_list,
    Operation.CHECKPOINT_ANSWER: checkpoints.answer,
    Operation.DECISION_ANSWER: decisions.answer,
    Operation.OPERATOR_PROVE: decisions.prove,
    Operation.VIEW_RUNS_WATCH: views.runs_watch,
    Operation.VIEW_RUNS_PAGE: views.runs_page,
    Operation.VIEW_RUN_GET: views.run_get,
    Operation.VIEW_RUN_WATCH: views.run_watch,
    Operation.VIEW_RUN_UNWATCH: views.unwatch,
    Operation.VIEW_SESSION_WATCH: coordination.watch,
    Operation.VIEW_SESSION_WINDOW: coordination.window,
    Operation.VIEW_PAGE: views.page,
    Operation.VIEW_CONTENT: views.content,
    Operation.VIEW_SEARCH: views.search,
    Operation.WORKFLOW_MESSAGE_REPORT_BRANCH: coordination.report_branch,
    Operation.WORKFLOW_TURN_REPORT: coordination.report_turn,
    Operation.SESSION_VIEW_CLEAR_TERMINAL: coordination.clear_terminal,
    Operation.INTERACTION_SUBMIT: interactions.submit,
    Operation.INTERACTION_ASSISTANT: interactions.assistant,
    Operation.INTERACTION_UPDATE: interactions.update,
    Operation.SESSION_RECORD: sessions.record,
    Operation.WORKFLOW_LIST: workflows.list_workflows,
    Operation.WORKFLOW_RESOLVE: workflows.resolve,
    Operation.WORKFLOW_CHECK: workflows.check,
    Operation.EFFECT_LIST: effects.list_effects,
    Operation.EFFECT_RESOLVE: effects.resolve,
    Operation.STATE_STATUS: state.status,
    Operation.STATE_VERIFY: state.verify,
    Operation.STATE_BACKUP: state.backup,
    Operation.SERVER_STATUS: server.status,
    Operation.SERVER_STOP: server.stop,
}

# What a server that is stopping still answers: it waits for effects, and may be told to hurry.
_WHILE_STOPPING: Final = frozenset({Operation.SERVER_STATUS, Operation.SERVER_STOP})


async def answer(services: Services, request: Request, session: Session) -> Response:
    """Answer one request of a connection.

    Args:
        services: The server.
        request: The request.
        session: The connection that it came on.

    Returns:
        The response.

    Raises:
        Refused: It may not, cannot or need not be done; nothing changed and nothing is remembered.
        Unavailable: Nothing changed; ask again later.
        IdempotencyConflict: The identity was used for another request.
    """
    operation = request.operation
    if services.stop.is_requested and operation not in _WHILE_STOPPING:
        raise stopping()
    claim = session_claim(operation, request.payload)
    connected = decisions.connected(services, session)
    speaker = speaker_of(session.coordinators, session.connection_id, connected, operation, claim)
    actor = actor_for(speaker, operation, request.client_id)
    try:
        payload = read_payload(
            operation,
            request.payload,
            run_id=request.run_id,
            expected_revision=request.expected_revision,
        )
    except PayloadInvalid:
        if OPERATIONS[operation].kind is not OperationClass.READ:
            await _require_new(services, request)
        raise
    call = Call(request, payload, speaker, claim, actor, session)
    try:
        require_own_run(services, call)
        reply = await HANDLERS[operation](services, call)
    except Corrupt as error:
        services.log.limited("content.corrupt", operation=operation, code=error.reason_code)
        raise Unavailable(
            "What is stored of this is damaged.",
            code=error.reason_code,
            hint="See what else is: pi-workflows state verify",
        ) from error
    return response(request, reply)


async def _require_new(services: Services, request: Request) -> None:
    """Refuse a request whose identity was used for another one. Raises IdempotencyConflict."""
    await known(services.writer, request)
