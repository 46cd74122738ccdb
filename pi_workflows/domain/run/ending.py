"""The end of a run: one terminal event.

Everything unfinished closed with it, and the queue told afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import decode
from pi_workflows.base.errors import TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.definition.route import End, route
from pi_workflows.domain.decision import state as decisions
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.effect.events import EffectApplied, EffectReserved
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.follow_up import state as follow_ups
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.request.state import rejected
from pi_workflows.domain.rows import (
    AttemptChange,
    EffectRow,
    QueueStatus,
    RequestChange,
    RunChange,
    SubmissionChange,
)
from pi_workflows.domain.run.events import (
    RunCancelled,
    RunCompleted,
    RunEnded,
    RunFailed,
    RunQueueSettled,
    RunTimedOut,
)
from pi_workflows.domain.run.state import (
    NODE_OUTCOME,
    LastStep,
    OpenAttempt,
    RunState,
    failure_code,
    last_step,
    left_attempt,
    live_run,
    open_attempt,
    pending_request,
    run_state,
    snapshot_of,
    working_run,
)

Ending: TypeAlias = Literal["completed", "failed", "timed_out", "cancelled"]

_EVENTS: Final[dict[Ending, type[RunEnded]]] = {
    "completed": RunCompleted,
    "failed": RunFailed,
    "timed_out": RunTimedOut,
    "cancelled": RunCancelled,
}
_QUEUE: Final[dict[str, QueueStatus]] = {
    "completed": "done",
    "failed": "failed",
    "timed_out": "failed",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class FinishRun(Command):
    """A runner reached the end of the route.

    Attributes:
        outcome: How the run ended.
        output: The final node's output, of a completed run.
        failure: What went wrong, of a run that failed or timed out.
    """

    outcome: Literal["completed", "failed", "timed_out"]
    output: Blob | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class FailRun(Command):
    """The server ends a run whose runner broke the protocol; an open attempt fails with it."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class SettleQueue(Command):
    """The queue takes over a terminal result."""


def finish_run(command: FinishRun, context: Context, read: Read) -> Decided:
    """Decide that a run ended where its route ended.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, an attempt is open, or the route does not end like this.
    """
    state = working_run(read, command.run_id)
    if open_attempt(read, command.run_id) is not None:
        raise TransitionDenied("An attempt is still open.", code="attemptOpen")
    step = last_step(read, command.run_id)
    if command.outcome != "completed" and command.failure is None:
        raise TransitionDenied("A run that did not complete has an error.", code="errorMissing")
    if command.outcome == "completed" and command.failure is not None:
        raise TransitionDenied("A run that completed has no error.", code="errorUnexpected")
    if command.outcome == "failed":
        return ended(read, context, state, "failed", failure=command.failure)
    if step is None or _route_end(read, state, step) != command.outcome:
        raise TransitionDenied(f"The route does not end {command.outcome}.", code="routeMismatch")
    if command.outcome == "completed" and command.output is None:
        raise TransitionDenied("A completed run needs an output.", code="outputMissing")
    if command.output is not None and command.output.digest != step.output_hash:
        raise TransitionDenied("The output is not the final node's.", code="outputMismatch")
    return ended(
        read, context, state, command.outcome, output=command.output, failure=command.failure
    )


def _route_end(read: Read, state: RunState, step: LastStep) -> str | None:
    """Return how the run ends after its last step, or None when it goes on."""
    decided = route(
        snapshot_of(read, state),
        step.node_id,
        NODE_OUTCOME[step.status],
        lambda: read.document(decode, step.output_hash) if step.output_hash else None,
        failure_code(read, step),
    )
    return decided.outcome if isinstance(decided, End) else None


def fail_run(command: FailRun, context: Context, read: Read) -> Decided:
    """Decide that a run failed because of its runner.

    Raises as `live_run`, or TransitionDenied `runNotClaimed`: a pause came first, and ended what
    the runner could do wrong.
    """
    state = live_run(read, command.run_id)
    if state.queue_status not in ("starting", "running"):
        raise TransitionDenied(f"No runner has run {command.run_id}.", code="runNotClaimed")
    return ended(read, context, state, "failed", failure=command.failure)


def ended(
    read: Read,
    context: Context,
    state: RunState,
    ending: Ending,
    *,
    output: Blob | None = None,
    failure: Failure | None = None,
) -> Decided:
    """Return a run's end with everything unfinished closed (state contract, "Terminal").

    Args:
        read: Reads of the deciding transaction.
        context: When and by whom.
        state: The run.
        ending: How it ends.
        output: Its output, if it completed.
        failure: Its error, if it failed or timed out.

    Returns:
        The terminal event, the end of each effect, the settlement effect, and its application as
        the next command.
    """
    attempt = open_attempt(read, state.run_id)
    error = failure.blob() if failure else None
    requests = _closed_requests(read, state)
    submissions, receipts = _refused(read, requests)
    effect_id = ids.effect_id(state.resource_id, effects.SETTLE_QUEUE, state.run_id)
    change = RunChange(
        status=ending,
        paused=0,
        status_detail=None,
        final_output_hash=output.hex if output else None,
        error_hash=error.hex if error else None,
        finished_at=context.at_ms,
    )
    event = _EVENTS[ending](
        lease=state.released(),
        run_id=state.run_id,
        run=change,
        attempt=_closed_attempt(read, state, attempt, ending, context.at_ms),
        interval=attempt.closed() if attempt else None,
        requests=requests,
        submissions=submissions,
        settle_effect_id=effect_id,
    )
    settle = _settle_effect(state, context, effect_id, ending, error)
    following = follow_ups.closed_by_end(read, state.run_id, ending)
    drafts = (
        state.draft(event),
        *effects.abandoned(read, state.resource_id, context.at_ms),
        *messages.closed_by_end(read, state.run_id, context.at_ms),
        *following.drafts,
        *decisions.closed_by_end(read, state, ending, context.at_ms),
        settle[0],
    )
    blobs = tuple(blob for blob in (output, error, settle[1], *receipts) if blob is not None)
    return Decided(
        drafts=drafts,
        blobs=(*blobs, *following.blobs),
        receipt={"runId": state.run_id, "status": ending},
        follow_up=SettleQueue(state.run_id),
    )


def _closed_attempt(
    read: Read, state: RunState, attempt: OpenAttempt | None, ending: Ending, at_ms: int
) -> AttemptChange | None:
    """Return the end of the attempt that was open, or lost its runner, when the run ended."""
    attempt_id = attempt.attempt_id if attempt else left_attempt(read, state.run_id)
    if attempt_id is None:
        return None
    status: Literal["failed", "cancelled"] = "cancelled" if ending == "cancelled" else "failed"
    return AttemptChange(attempt_id=attempt_id, status=status, finished_at=at_ms)


def _closed_requests(read: Read, state: RunState) -> tuple[RequestChange, ...]:
    """Return the end of the run's open question; one that was answered stays settled."""
    request = pending_request(read, state.run_id)
    if request is None:
        return ()
    return (
        RequestChange(request_id=request.request_id, revision=request.revision, status="cancelled"),
    )


def _refused(
    read: Read, requests: tuple[RequestChange, ...]
) -> tuple[tuple[SubmissionChange, ...], tuple[Blob, ...]]:
    """Return the refusal of an answer that was being judged when the run ended."""
    found = [rejected(read, request.request_id, "The run ended.") for request in requests]
    changes = tuple(change for each in found for change in each[0])
    return changes, tuple(receipt for each in found for receipt in each[1])


def _settle_effect(
    state: RunState, context: Context, effect_id: str, ending: Ending, error: Blob | None
) -> tuple[Draft, Blob]:
    """Return the reservation of the queue's settlement and its payload."""
    payload = Blob.json({"status": ending, "error": error.hex if error else None})
    row = EffectRow(
        effect_id=effect_id,
        resource_id=ids.resource_id("effect", effect_id),
        source_resource_id=state.resource_id,
        source_revision=state.revision + 1,
        effect_type=effects.SETTLE_QUEUE,
        idempotency_key=state.run_id,
        payload_hash=payload.hex,
        owner_scope="run",
        status="pending",
        attempt_count=0,
        next_attempt_at=context.at_ms,
        result_hash=None,
        external_ref=None,
        error_hash=None,
        created_at=context.at_ms,
        updated_at=context.at_ms,
        settled_at=None,
    )
    event = EffectReserved(effect=row, request_hash=None)
    return Draft("effect", effect_id, event, state.run_id), payload


def settle_queue(command: SettleQueue, context: Context, read: Read) -> Decided:
    """Decide that the queue takes over a terminal result; done once, repeated without effect.

    Raises:
        NotFound: There is no such run or no such effect.
        TransitionDenied: The run has not ended.
    """
    state = run_state(read, command.run_id)
    if not state.is_terminal:
        raise TransitionDenied("The run has not ended.", code="runNotTerminal")
    effect = effects.effect_state(
        read, ids.effect_id(state.resource_id, effects.SETTLE_QUEUE, state.run_id)
    )
    if effect.status != "pending":
        return Decided()
    queue = state.queue(_QUEUE[state.status]).model_copy(
        update={
            "finished_at": context.at_ms,
            "error_code": read.document(Failure.parse, state.error_hash).code
            if state.error_hash
            else None,
            "error_hash": state.error_hash.hex() if state.error_hash else None,
        }
    )
    change = effect.change("applied").model_copy(update={"settled_at": context.at_ms})
    return Decided(
        drafts=(
            state.draft(
                RunQueueSettled(run_id=state.run_id, queue=queue, effect_id=effect.effect_id)
            ),
            effect.draft(EffectApplied(effect=change)),
        )
    )
