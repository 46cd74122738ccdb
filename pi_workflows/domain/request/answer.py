"""A person's answer to a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import (
    IdempotencyConflict,
    NotFound,
    Outcome,
    RevisionConflict,
    TransitionDenied,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.rows import RequestChange, SubmissionRow
from pi_workflows.domain.run.state import run_state

SQL: Final = load(__package__, "reads.sql")


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


class Asked(NamedTuple):
    """A question, with its accepted answer if there is one."""

    request_id: str
    run_id: str
    attempt_id: str
    node_id: str
    kind: str
    revision: int
    status: str
    accepted_submission_id: str | None
    contract_hash: bytes
    accepted_payload_hash: bytes | None


def asked(read: Read, run_id: str, request_id: str) -> Asked:
    """Return a question of a run. Raises NotFound when the run has no such question."""
    found = read.one(Asked, SQL["asked"], request_id=request_id)
    if found is None or found.run_id != run_id:
        raise NotFound(
            f"Run {run_id} has no request {request_id}.", code="requestMissing", field="requestId"
        )
    return found


def answer_checkpoint(command: AnswerCheckpoint, context: Context, read: Read) -> Decided:
    """Decide on an answer: the first valid one wins, and the run is queued to take it.

    Raises:
        NotFound: There is no such run or question.
        RevisionConflict: The run is paused, the question changed, or another answer won.
        IdempotencyConflict: `submissionReused`, the answer's ID belongs to another one.
        TransitionDenied: The question is not a checkpoint's, or was cancelled.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    if request.kind != "checkpoint":
        raise TransitionDenied(
            f"Request {request.request_id} is not a checkpoint.", code="requestKind"
        )
    if request.status == "settled":
        return _settled(command, request)
    if request.status == "cancelled":
        raise TransitionDenied(
            f"Request {request.request_id} was cancelled.", code="requestCancelled"
        )
    if state.paused:
        raise RevisionConflict(
            f"Run {state.run_id} is paused.",
            code="runPaused",
            hint=f"Resume it first: pi-workflows resume {state.run_id}",
        )
    if command.request_revision not in (None, request.revision):
        raise RevisionConflict(
            "The question changed since it was read.",
            code="staleRevision",
            hint=f"Read it again: pi-workflows show {state.run_id}",
        )
    if read.one(str, SQL["submission"], submission_id=command.submission_id) is not None:
        raise IdempotencyConflict(
            f"Submission {command.submission_id} is the answer to another question.",
            code="submissionReused",
            field="submissionId",
            hint="Give each answer an ID of its own.",
        )
    change = RequestChange(
        request_id=request.request_id,
        revision=request.revision,
        status="settled",
        accepted_submission_id=command.submission_id,
        settled_at=context.at_ms,
    )
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
