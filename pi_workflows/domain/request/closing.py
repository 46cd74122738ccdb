"""A question that closes without an answer: its time ran out, or its session never gave one.

The attempt goes on waiting with the reason; a runner takes it, records the outcome, and follows the
route (engine contract, "Budget" and "Reminders").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome, TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.request.events import CloseReason, RequestCancelled
from pi_workflows.domain.request.state import SQL, Asked, asked, rejected
from pi_workflows.domain.rows import (
    AttemptChange,
    ClosedInterval,
    QueueChange,
    RunChange,
)
from pi_workflows.domain.run.events import InteractionEvent, RunInteractionTimeoutStarted
from pi_workflows.domain.run.state import OpenAttempt, RunState, open_attempt, run_state

TIMED_OUT: Final = "timedOut"
DECISION_EXPIRED: Final = "decisionExpired"
MISSING_SUBMISSION: Final = "missingSubmission"
_TOLD: Final = frozenset[Literal["step", "decision"]]({"step", "decision"})


@dataclass(frozen=True, slots=True)
class ExpireRequest(Command):
    """The active time of a question is over.

    Attributes:
        request_id: The question.
        elapsed_ms: Active time of the open interval.
    """

    request_id: str
    elapsed_ms: int = 0


class Spent(NamedTuple):
    """The active time of an attempt so far.

    Attributes:
        interval_number: Its newest interval; 0 before the first.
        elapsed_ms: The time of those that ended.
    """

    interval_number: int
    elapsed_ms: int


def spent(read: Read, attempt_id: str) -> Spent:
    """Return the active time that an attempt has used up in closed intervals."""
    found = read.one(Spent, SQL["intervals"], attempt_id=attempt_id)
    assert found is not None
    return found


def closed_outcome(code: str) -> Literal["timed_out", "failed"]:
    """Return how the attempt of a question ends that closed for this reason."""
    return "timed_out" if code in (TIMED_OUT, DECISION_EXPIRED) else "failed"


def expire_request(command: ExpireRequest, context: Context, read: Read) -> Decided:
    """Decide that a question's time is over; one that closed already is left as it is.

    Raises:
        NotFound: There is no such run or request.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    attempt = open_attempt(read, command.run_id)
    if request.status != "pending" or attempt is None or state.is_terminal:
        return Decided(outcome=Outcome.ADOPTED)
    budget_ms = attempt.timeout_ms or 0
    used_ms = spent(read, attempt.attempt_id).elapsed_ms
    if attempt.elapsed_ms is not None:
        # What was measured of an interval that closed meanwhile is among the spent time already.
        used_ms += max(attempt.elapsed_ms, command.elapsed_ms)
    if not budget_ms or used_ms < budget_ms:
        return Decided(outcome=Outcome.ADOPTED)
    failure = Failure(TIMED_OUT, f"no answer within {budget_ms} ms of active time")
    drafts, blobs = closed(
        read, state, request, failure, context.at_ms, elapsed_ms=command.elapsed_ms
    )
    return Decided(drafts=drafts, blobs=blobs)


def require_in_time(read: Read, request: Asked) -> None:
    """Refuse an answer to a question whose time ran out; only then it is said to have.

    Raises TransitionDenied `requestExpired`.
    """
    if request.status != "cancelled":
        return
    reason = read.one(bytes, SQL["closed_with"], request_id=request.request_id)
    if reason is not None and read.document(Failure.parse, reason).code == TIMED_OUT:
        raise TransitionDenied(
            f"The time for request {request.request_id} is over.", code="requestExpired"
        )


class _Parts(NamedTuple):
    """What every closing of a question changes on its run."""

    run: RunChange
    attempt: AttemptChange
    interval: ClosedInterval | None
    queue: QueueChange | None


def closed(
    read: Read,
    state: RunState,
    request: Asked,
    failure: Failure,
    at_ms: int,
    *,
    elapsed_ms: int = 0,
    refusal: str = "The question closed meanwhile.",
) -> tuple[tuple[Draft, ...], tuple[Blob, ...]]:
    """Return the end of an open question without an answer.

    Args:
        read: Reads of the deciding transaction.
        state: The run, which has not ended.
        request: The question, pending.
        failure: Why; its code decides how the attempt ends.
        at_ms: When it is decided.
        elapsed_ms: Active time of the open interval.
        refusal: What is said of an answer that is being judged.

    Returns:
        The run's event and the end of the messages that told the question, and the values that
        they name. A paused run is queued by its resumption.
    """
    attempt = open_attempt(read, state.run_id)
    assert attempt is not None, "a question without its attempt"
    error = failure.blob()
    refused, receipts = rejected(read, request.request_id, refusal)
    parts = _parts(state, attempt, error, at_ms, elapsed_ms)
    event: InteractionEvent
    if failure.code == TIMED_OUT:
        event = RunInteractionTimeoutStarted(
            run_id=state.run_id,
            request=request.cancelled(),
            submissions=refused,
            **parts._asdict(),
        )
    else:
        event = RequestCancelled(
            run_id=state.run_id,
            request=request.cancelled(),
            submissions=refused,
            reason=_reason(failure.code),
            **parts._asdict(),
        )
    told = messages.cancelled(read, state.run_id, kinds=_TOLD)
    return (state.draft(event), *told), (error, *receipts)


def _parts(
    state: RunState, attempt: OpenAttempt, error: Blob, at_ms: int, elapsed_ms: int
) -> _Parts:
    """Return what changes beside the question itself."""
    change = AttemptChange(
        attempt_id=attempt.attempt_id, status=attempt.status, error_hash=error.hex
    )
    queue = None if state.paused else state.queue("queued", available_at=at_ms)
    return _Parts(state.run(status="queued"), change, attempt.closed(at_ms, elapsed_ms), queue)


def _reason(code: str) -> CloseReason:
    """Return the reason as the event names it."""
    return "decisionExpired" if code == DECISION_EXPIRED else "missingSubmission"
