"""Progress that a session's model publishes about the step that it works on."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import RevisionConflict
from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.progress import Account, recorded
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.request.closing import require_in_time
from pi_workflows.domain.request.state import (
    asked,
    require_kind,
    require_open,
    require_target,
)
from pi_workflows.domain.run.state import open_attempt, run_state


@dataclass(frozen=True, slots=True)
class PublishUpdate(Command):
    """Replace what the session says about its step under one type and key.

    Attributes:
        request_id: The step's request.
        request_revision: Its revision as the session read it.
        session_id: The session; None for the runner of a step without one.
        update_type: Such as `progress`.
        update_key: Which of the step's accounts of that type.
        data: The complete new account.
    """

    request_id: str
    request_revision: int | None
    session_id: str | None
    update_type: str
    update_key: str
    data: Blob


def publish_update(command: PublishUpdate, context: Context, read: Read) -> Decided:
    """Decide to record a session's progress; it completes nothing and chooses no route.

    Raises:
        NotFound: There is no such run or request.
        TransitionDenied: `requestKind`, `requestTarget`, `requestCancelled` or
            `requestExpired`.
        RevisionConflict: `runPaused`, `staleRevision` or `alreadyAnswered`.
        LimitExceeded: `updateKeys`.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    require_kind(request, "agent")
    require_target(request, command.session_id)
    if request.status == "settled":
        raise RevisionConflict(
            f"Request {request.request_id} was already answered.", code="alreadyAnswered"
        )
    require_in_time(read, request)
    require_open(state, request, command.request_revision)
    attempt = open_attempt(read, command.run_id)
    assert attempt is not None, "an open question without its attempt"
    account = Account(command.update_type, command.update_key, command.data)
    return recorded(read, state, attempt, account, context.at_ms)
