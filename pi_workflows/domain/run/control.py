"""What a person or client does to a run: pause it, let it go on, cancel it."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, OwnershipLost, TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.message import step
from pi_workflows.domain.message.recovery import open_handoff, stopped
from pi_workflows.domain.message.state import MessageState
from pi_workflows.domain.request.state import TOLD_AS_STEP, asked, rejected
from pi_workflows.domain.rows import QueueChange, RequestChange
from pi_workflows.domain.run.ending import ended
from pi_workflows.domain.run.events import RunPaused, RunResumeRequested
from pi_workflows.domain.run.state import (
    PendingRequest,
    RunState,
    live_run,
    open_attempt,
    pending_request,
    run_state,
    unclaimed_status,
)

AFTER_STEP = "after the current step"


@dataclass(frozen=True, slots=True)
class PauseRun(Command):
    """Stop working on a run until it is resumed.

    Attributes:
        elapsed_ms: Active time of the interval in which its session works; 0 leaves the last
            sample.
    """

    elapsed_ms: int = 0


@dataclass(frozen=True, slots=True)
class ResumeRun(Command):
    """Let a paused or parked run go on. The server has verified the sources before."""


@dataclass(frozen=True, slots=True)
class CancelRun(Command):
    """End a run for good."""


def pause_run(command: PauseRun, context: Context, read: Read) -> Decided:
    """Decide to pause (decision "pause"): at once, save while a manual effect is under way.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended.
    """
    state = live_run(read, command.run_id)
    if state.paused:
        return Decided(receipt=_paused_receipt(state, "already paused", already=True))
    applying = effects.applying(read, state.resource_id)
    if applying is not None and effects.is_manual(read, applying):
        event = RunPaused(run_id=state.run_id, run=state.run(paused=1), detail=AFTER_STEP)
        return Decided(drafts=(state.draft(event),), receipt=_paused_receipt(state, AFTER_STEP))
    return paused(read, state, context.at_ms, elapsed_ms=command.elapsed_ms)


def paused(read: Read, state: RunState, at_ms: int, *, elapsed_ms: int = 0) -> Decided:
    """Return the pause of a run that no manual effect holds up (state contract, "Pause").

    Args:
        read: Reads of the deciding transaction.
        state: The run; neither ended nor paused.
        at_ms: When it is decided.
        elapsed_ms: Active time of the open interval, beyond its last sample.

    Returns:
        The run's event, the end of the effect's try under way, and of the steps that were still to
        be told.
    """
    attempt = open_attempt(read, state.run_id)
    applying = effects.applying(read, state.resource_id)
    request = pending_request(read, state.run_id)
    submissions, receipts = (
        rejected(read, request.request_id, "The run was paused.") if request else ((), ())
    )
    event = RunPaused(
        lease=state.released(),
        run_id=state.run_id,
        run=state.run(paused=1),
        queue=_paused_queue(state),
        attempt=attempt.interrupted() if attempt else None,
        interval=attempt.closed(elapsed_ms=elapsed_ms) if attempt else None,
        submissions=submissions,
        detail="paused",
    )
    drafts: list[Draft] = [state.draft(event)]
    if applying is not None:
        drafts.append(effects.interrupted(applying, at_ms))
    drafts.extend(messages.cancelled(read, state.run_id, kinds=frozenset({"step"})))
    return Decided(drafts=tuple(drafts), blobs=receipts, receipt=_paused_receipt(state, "paused"))


def _paused_queue(state: RunState) -> QueueChange:
    """Return the queue columns of a paused run; why it stood still before is not forgotten."""
    error_hash = state.queue_error_hash.hex() if state.queue_error_hash else None
    return state.queue("parked").model_copy(
        update={"error_code": state.error_code, "error_hash": error_hash}
    )


def _paused_receipt(state: RunState, detail: str, *, already: bool = False) -> dict[str, Json]:
    """Return what the caller of a pause is told."""
    return {
        "runId": state.run_id,
        "status": "parked",
        "paused": True,
        "alreadyPaused": already,
        "detail": detail,
    }


def resume_run(command: ResumeRun, context: Context, read: Read) -> Decided:
    """Decide to let a run go on; an open question stays open under a new revision.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, or one of its effects waits for a person
            (`effectAmbiguous`).
    """
    state = live_run(read, command.run_id)
    request = pending_request(read, state.run_id)
    if not state.paused:
        if state.is_claimed or state.queue_status == "queued":
            return Decided(receipt=_active_receipt(state), outcome=Outcome.ADOPTED)
        if request is not None:
            return Decided(receipt=_waiting_receipt(state), outcome=Outcome.ADOPTED)
    ambiguous = effects.ambiguous_effect(read, state.resource_id)
    if ambiguous is not None:
        raise TransitionDenied(
            f"Effect {ambiguous} of the run is ambiguous.",
            code="effectAmbiguous",
            hint=f"Say what became of it: pi-workflows effects resolve {ambiguous}",
        )
    revised = _revised(request)
    event = RunResumeRequested(
        run_id=state.run_id,
        run=state.run(
            paused=0,
            status=None
            if request is not None or state.is_claimed
            else unclaimed_status(open_attempt(read, state.run_id)),
        ),
        queue=_resumed_queue(state, request, context.at_ms),
        request=revised,
    )
    receipt = _waiting_receipt(state) if request else _queued_receipt(state)
    drafts, blobs = _told_again(read, state, revised, context.at_ms)
    return Decided(drafts=(state.draft(event), *drafts), blobs=blobs, receipt=receipt)


def _told_again(
    read: Read, state: RunState, revised: RequestChange | None, at_ms: int
) -> tuple[tuple[Draft, ...], tuple[Blob, ...]]:
    """Return the message that tells a session its step under the new revision."""
    if revised is None or state.execution_mode != "interactive":
        return (), ()
    request = asked(read, state.run_id, revised.request_id)
    if request.kind not in TOLD_AS_STEP:
        return (), ()
    told = step.told(
        read,
        step.Step(request.request_id, state.run_id, request.target_session_id, revised.revision),
        read.blob(request.contract_hash),
        key=f"resumed:{revised.revision}",
        at_ms=at_ms,
        reason="resumed",
    )
    return (told[0],), (told[1],)


def _resumed_queue(
    state: RunState, request: PendingRequest | None, at_ms: int
) -> QueueChange | None:
    """Return the run's place in the queue: none changes while a claim or a question holds it."""
    if state.is_claimed or request is not None:
        return None
    return state.queue("queued", available_at=at_ms).model_copy(update={"consecutive_errors": 0})


def _revised(request: PendingRequest | None) -> RequestChange | None:
    """Return the open question's next revision.

    What was answered to the one before no longer counts.
    """
    if request is None or request.kind == "decision":
        # What a person decides stays exactly what was asked.
        return None
    return RequestChange(
        request_id=request.request_id, revision=request.revision + 1, status="pending"
    )


def _queued_receipt(state: RunState) -> dict[str, Json]:
    """Return what the caller is told when the run waits for capacity again."""
    return {
        "runId": state.run_id,
        "status": "queued",
        "resumable": True,
        "alreadyRunning": False,
        "detail": "waits for a free runner",
    }


def _waiting_receipt(state: RunState) -> dict[str, Json]:
    """Return what the caller is told when the run still waits for an answer."""
    return {
        "runId": state.run_id,
        "status": "parked",
        "paused": False,
        "waitingForInteraction": True,
        "resumable": True,
        "alreadyRunning": False,
        "detail": "waits for an answer",
    }


def _active_receipt(state: RunState) -> dict[str, Json]:
    """Return what the caller is told when there is nothing to resume."""
    return {
        "runId": state.run_id,
        "active": True,
        "resumable": False,
        "alreadyRunning": True,
        "detail": "goes on already",
    }


def cancel_run(command: CancelRun, context: Context, read: Read) -> Decided:
    """Decide to end a run, whatever it does; of one that has ended, what may still follow it.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended otherwise.
        OwnershipLost: Another owner holds it.
    """
    state = run_state(read, command.run_id)
    recovery = open_handoff(read, state.run_id) if state.is_terminal else None
    if recovery is not None:
        return _recovery_stopped(state, recovery)
    if state.status == "cancelled":
        return Decided(
            receipt={"runId": state.run_id, "status": "cancelled"}, outcome=Outcome.ADOPTED
        )
    live_run(read, command.run_id)
    is_live = state.expires_at is not None and state.expires_at > context.at_ms
    if is_live and state.owner_id != context.host_id:
        raise OwnershipLost("Another owner works on the run.", code="ownerChanged")
    return ended(read, context, state, "cancelled")


def _recovery_stopped(state: RunState, message: MessageState) -> Decided:
    """Return the end of what an ended run may set off by itself."""
    drafts = (
        (message.draft(stopped(message, "cancelled")),) if message.recovery_stop is None else ()
    )
    return Decided(
        drafts=drafts,
        receipt={"runId": state.run_id, "status": state.status, "recoveryStopped": True},
        outcome=Outcome.ACCEPTED if drafts else Outcome.ADOPTED,
    )
