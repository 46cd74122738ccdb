"""A runner takes what became of a question: its accepted answer, or why there is none."""

from __future__ import annotations

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.closing import closed_outcome
from pi_workflows.domain.rows import RequestChange
from pi_workflows.domain.run.state import AskedRequest, OpenAttempt, request_of_attempt


def taken_answer(
    read: Read,
    attempt: OpenAttempt,
    *,
    outcome: str,
    output: Blob | None,
    failure: Failure | None,
    at_ms: int,
) -> RequestChange | None:
    """Return the consumption of the accepted answer that an attempt ends with.

    Args:
        read: Reads of the deciding transaction.
        attempt: The open attempt.
        outcome: How it is said to end.
        output: Its output.
        failure: Its error.
        at_ms: When it ends.

    Returns:
        The change of its question; None when it asked nothing, or its question closed without an
        answer.

    Raises:
        TransitionDenied: `answerMissing`, `outputMismatch`, or `outcomeMismatch`: the question
            closed with another reason.
    """
    request = request_of_attempt(read, attempt.attempt_id)
    if attempt.status != "waiting" or request is None:
        if attempt.node_type in ("checkpoint", "agent") and outcome == "ok":
            raise TransitionDenied(
                f"Only an answer completes a node of type {attempt.node_type}.",
                code="answerMissing",
            )
        return None
    if request.status == "cancelled":
        _require_reason(read, attempt, outcome, failure)
        return None
    if request.status != "settled":
        raise TransitionDenied("The attempt waits for an answer.", code="answerMissing")
    is_answer = output is not None and output.digest == request.answer_hash
    if outcome == "ok" and not is_answer:
        raise TransitionDenied("The output is not the accepted answer.", code="outputMismatch")
    return _consumed(request, at_ms)


def _require_reason(
    read: Read, attempt: OpenAttempt, outcome: str, failure: Failure | None
) -> None:
    """Refuse another end of an attempt than the one that its question closed with."""
    if attempt.error_hash is None:
        raise TransitionDenied("The attempt waits for an answer.", code="answerMissing")
    stored = read.document(Failure.parse, attempt.error_hash)
    if failure != stored or outcome != closed_outcome(stored.code):
        raise TransitionDenied("The question closed with another reason.", code="outcomeMismatch")


def _consumed(request: AskedRequest, at_ms: int) -> RequestChange:
    """Return a question whose answer was taken."""
    return RequestChange(
        request_id=request.request_id,
        revision=request.revision,
        status="settled",
        accepted_submission_id=request.accepted_submission_id,
        settled_at=request.settled_at,
        consumed_at=at_ms,
    )
