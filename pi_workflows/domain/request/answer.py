"""A person's answer to a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome, RevisionConflict
from pi_workflows.base.sql import Read
from pi_workflows.domain.decision.resolution import refused_candidate
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.request.state import (
    Asked,
    asked,
    require_kind,
    require_new_submission,
    require_open,
)
from pi_workflows.domain.rows import SubmissionRow
from pi_workflows.domain.run.state import run_state


@dataclass(frozen=True, slots=True)
class AnswerCheckpoint(Command):
    """Answer an open question. The value was validated against the checkpoint's model before.

    Attributes:
        request_id: The question.
        request_revision: The question's revision as the person read it.
        submission_id: The answer's own identity.
        idempotency_key: The command's key.
        value: The answer.
    """

    request_id: str
    request_revision: int | None
    submission_id: str
    idempotency_key: str
    value: Blob


def answer_checkpoint(command: AnswerCheckpoint, context: Context, read: Read) -> Decided:
    """Decide on an answer: the first valid one wins, and the run is queued to take it.

    Raises:
        NotFound: There is no such run or question.
        RevisionConflict: The run is paused, the question changed, or another answer won.
        IdempotencyConflict: `submissionReused`, the answer's ID belongs to another one.
        TransitionDenied: The question is not a checkpoint's, or was cancelled.
        AuthorityDenied: `decisionProtected`, the question is a decision and already answered so.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    if request.kind == "decision":
        return refused_candidate(read, context, request, command.submission_id, command.value)
    require_kind(request, "checkpoint")
    if request.status == "settled":
        return _settled(command, request)
    require_open(state, request, command.request_revision)
    require_new_submission(read, command.submission_id)
    change = request.settled(command.submission_id, context.at_ms)
    submission = SubmissionRow(
        submission_id=command.submission_id,
        request_id=request.request_id,
        idempotency_key=command.idempotency_key,
        request_revision=request.revision,
        payload_hash=command.value.hex,
        outcome="accepted",
        receipt_hash=None,
        submitted_at=context.at_ms,
    )
    event = RequestSubmitted(
        run_id=state.run_id,
        queue=state.queue("queued", available_at=context.at_ms),
        submission=submission,
        request=change,
    )
    return Decided(
        drafts=(state.draft(event),),
        blobs=(command.value,),
        receipt={"requestId": request.request_id, "runId": state.run_id},
    )


def _settled(command: AnswerCheckpoint, request: Asked) -> Decided:
    """Adopt the answer that won when it is this very one; else it lost."""
    is_same = (
        request.accepted_submission_id == command.submission_id
        and request.accepted_payload_hash == command.value.digest
    )
    if not is_same:
        raise RevisionConflict(
            f"Request {request.request_id} was already answered.", code="alreadyAnswered"
        )
    return Decided(
        receipt={"requestId": request.request_id, "runId": request.run_id},
        outcome=Outcome.ADOPTED,
    )
