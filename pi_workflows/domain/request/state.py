"""What a decision about a question depends on, and the parts that several decisions share."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import (
    IdempotencyConflict,
    NotFound,
    RevisionConflict,
    TransitionDenied,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.display import RequestKind
from pi_workflows.domain.rows import RequestChange, RequestStatus, SubmissionChange
from pi_workflows.domain.run.state import RunState

SQL: Final = load(__package__, "reads.sql")
TOLD_AS_STEP: Final = frozenset[RequestKind]({"agent", "assistant"})
"""The questions that a session's model answers, so that a message tells them to it."""

SubmissionOutcome: TypeAlias = Literal["validating", "accepted", "rejected", "adopted"]


class Asked(NamedTuple):
    """A question, with its accepted answer if there is one."""

    request_id: str
    run_id: str
    attempt_id: str
    node_id: str
    target_session_id: str
    kind: RequestKind
    revision: int
    status: RequestStatus
    accepted_submission_id: str | None
    settled_at: int | None
    contract_hash: bytes
    accepted_payload_hash: bytes | None

    def settled(self, submission_id: str, at_ms: int) -> RequestChange:
        """Return the question with the answer that won."""
        return RequestChange(
            request_id=self.request_id,
            revision=self.revision,
            status="settled",
            accepted_submission_id=submission_id,
            settled_at=at_ms,
        )

    def cancelled(self) -> RequestChange:
        """Return the question without an answer, for good."""
        return RequestChange(request_id=self.request_id, revision=self.revision, status="cancelled")


class Submission(NamedTuple):
    """An answer as it is stored."""

    submission_id: str
    request_id: str
    idempotency_key: str
    request_revision: int
    payload_hash: bytes
    outcome: SubmissionOutcome
    receipt_hash: bytes | None


def asked(read: Read, run_id: str, request_id: str) -> Asked:
    """Return a question of a run. Raises NotFound when the run has no such question."""
    found = read.one(Asked, SQL["asked"], request_id=request_id)
    if found is None or found.run_id != run_id:
        raise NotFound(
            f"Run {run_id} has no request {request_id}.", code="requestMissing", field="requestId"
        )
    return found


def require_kind(request: Asked, kind: RequestKind) -> None:
    """Refuse an answer to a question of another kind. Raises TransitionDenied `requestKind`."""
    if request.kind != kind:
        article = "an" if kind[0] in "aeiou" else "a"
        raise TransitionDenied(
            f"Request {request.request_id} is not {article} {kind}'s: it is of kind"
            f" {request.kind}.",
            code="requestKind",
        )


def require_target(request: Asked, session_id: str | None) -> None:
    """Refuse a session that was not asked. Raises TransitionDenied `requestTarget`."""
    if session_id is not None and request.target_session_id != session_id:
        raise TransitionDenied(
            f"Request {request.request_id} is another session's.", code="requestTarget"
        )


def require_open(state: RunState, request: Asked, request_revision: int | None) -> None:
    """Refuse an answer to a question that is not open as it was read.

    Args:
        state: The run.
        request: The question; not settled.
        request_revision: Its revision as whoever answers read it; None when that does not matter.

    Raises:
        TransitionDenied: `requestCancelled`.
        RevisionConflict: `runPaused` or `staleRevision`.
    """
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
    if request_revision not in (None, request.revision):
        raise RevisionConflict(
            "The question changed since it was read.",
            code="staleRevision",
            hint=f"Read it again: pi-workflows show {state.run_id}",
        )


def require_new_submission(read: Read, submission_id: str) -> None:
    """Refuse an answer under the name of another one.

    Raises IdempotencyConflict `submissionReused`.
    """
    if read.one(str, SQL["submission_known"], submission_id=submission_id) is not None:
        raise IdempotencyConflict(
            f"Submission {submission_id} is another answer.",
            code="submissionReused",
            field="submissionId",
            hint="Give each answer an ID of its own.",
        )


def submission(read: Read, submission_id: str) -> Submission | None:
    """Return an answer, or None when there is none of that name."""
    return read.one(Submission, SQL["submission"], submission_id=submission_id)


def validating(read: Read, request_id: str) -> Submission | None:
    """Return the answer of a question that is being judged, or None."""
    return read.one(Submission, SQL["validating"], request_id=request_id)


def rejected(
    read: Read, request_id: str, error: str
) -> tuple[tuple[SubmissionChange, ...], tuple[Blob, ...]]:
    """Return the refusal of the answer that is being judged, as its question closed meanwhile.

    Args:
        read: Reads of the deciding transaction.
        request_id: The question.
        error: Why, one line for whoever answered.

    Returns:
        The changes, none without such an answer, and the receipts that they name.
    """
    open_one = validating(read, request_id)
    if open_one is None:
        return (), ()
    receipt = Blob.json({"error": error})
    change = SubmissionChange(
        submission_id=open_one.submission_id, outcome="rejected", receipt_hash=receipt.hex
    )
    return (change,), (receipt,)
