"""Who works on a run: the claim for a runner, the runner's readiness, and the end of a claim."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome, TransitionDenied
from pi_workflows.base.limits import (
    DETAIL_CHARS_MAX,
    NO_PROGRESS_DELAYS_MS,
    NO_PROGRESS_LAUNCHES_MAX,
)
from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.boundary import due_node
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.fact import Command, Context, Decided, Draft, LeaseClause
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.rows import QueueChange
from pi_workflows.domain.run.events import (
    LeaseClaimed,
    LeaseReleased,
    RunEffectAmbiguous,
    RunParked,
    RunRequeued,
    RunResumed,
    RunSourceChanged,
    RunStarted,
    RunWorkerNoProgress,
)
from pi_workflows.domain.run.state import (
    LastStep,
    OpenAttempt,
    RunState,
    last_step,
    live_run,
    open_attempt,
    run_state,
    snapshot_of,
    unclaimed_status,
)

EFFECT_AMBIGUOUS = "effectAmbiguous"
SOURCE_CHANGED = "workflowSourceChanged"
NO_PROGRESS = "runnerNoProgress"


@dataclass(frozen=True, slots=True)
class ClaimRun(Command):
    """Take a queued run for a runner."""


@dataclass(frozen=True, slots=True)
class MarkReady(Command):
    """The runner verified every source and begins."""


@dataclass(frozen=True, slots=True)
class FailLaunch(Command):
    """The runner could not load the workflow.

    Attributes:
        failure: `workflowSourceChanged`, `definitionChanged` or `importError`, and one line for
            people.
    """

    failure: Failure


@dataclass(frozen=True, slots=True)
class ReleaseClaim(Command):
    """Recovery ends the claim of a server that is gone, on a run or on one of its effects.

    Attributes:
        effect_id: The effect whose claim ends; None for the run's own.
    """

    effect_id: str | None = None


@dataclass(frozen=True, slots=True)
class LoseRunner(Command):
    """A runner ended without saying so.

    Attributes:
        launch_step_total: Steps the run had when the runner was launched.
        counted: Whether the loss counts against the run: it does when this server lived through it.
        detail: What is known about the end, one line.
    """

    launch_step_total: int
    counted: bool
    detail: str


def claim_run(command: ClaimRun, context: Context, read: Read) -> Decided:
    """Decide to claim a run that is due.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It ended, is paused, claimed, or not due.
    """
    state = live_run(read, command.run_id)
    is_due = state.queue_status == "queued" and state.available_at <= context.at_ms
    if state.paused or state.is_claimed or not is_due:
        raise TransitionDenied("The run is not due.", code="runNotDue")
    event = LeaseClaimed(
        lease=LeaseClause(op="claimed", generation=state.generation + 1, owner_type="host"),
        run_id=state.run_id,
        queue=state.queue("starting"),
        mode="schedule",
    )
    return Decided(drafts=(state.draft(event),), receipt={"generation": state.generation + 1})


def _starting_run(read: Read, run_id: str) -> RunState:
    """Return the state of a run that was claimed and whose runner is not ready yet."""
    state = live_run(read, run_id)
    if state.queue_status != "starting":
        raise TransitionDenied("The run does not wait for a runner.", code="runNotStarting")
    return state


def mark_ready(command: MarkReady, context: Context, read: Read) -> Decided:
    """Decide that the runner may begin: `run.started` the first time, `run.resumed` later.

    Raises as `live_run`, or TransitionDenied `runNotStarting`.
    """
    state = _starting_run(read, command.run_id)
    kind = RunResumed if state.was_ready else RunStarted
    queue = state.queue("running").model_copy(
        update={"started_at": state.queue_started_at or context.at_ms}
    )
    event = kind(run_id=state.run_id, run=state.run(status="running"), queue=queue)
    return Decided(drafts=(state.draft(event),))


def fail_launch(command: FailLaunch, context: Context, read: Read) -> Decided:
    """Decide to park a run whose workflow cannot be loaded as it was. Raises as `mark_ready`."""
    state = _starting_run(read, command.run_id)
    kind = RunSourceChanged if command.failure.code == SOURCE_CHANGED else RunParked
    error = command.failure.blob()
    event = kind(
        lease=state.released(),
        run_id=state.run_id,
        queue=parked(state, command.failure.code, error),
        code=command.failure.code,
        detail=command.failure.message.split("\n", 1)[0][:DETAIL_CHARS_MAX],
    )
    return Decided(drafts=(state.draft(event),), blobs=(error,))


def parked(state: RunState, code: str, error: Blob) -> QueueChange:
    """Return the queue columns of a run that stands still for a person."""
    return state.queue("parked").model_copy(update={"error_code": code, "error_hash": error.hex})


def release_claim(command: ReleaseClaim, context: Context, read: Read) -> Decided:
    """Decide that a vanished server's claim ended; one that has ended already is adopted.

    Raises:
        NotFound: There is no such run or effect.
        TransitionDenied: `claimHeld`, the deciding server itself holds it.
    """
    run = run_state(read, command.run_id)
    effect = effects.effect_state(read, command.effect_id) if command.effect_id else None
    held = run if effect is None else effect
    if held.owner_type is None:
        return Decided(outcome=Outcome.ADOPTED)
    if held.owner_id == context.host_id:
        raise TransitionDenied("The server's own claim is not released so.", code="claimHeld")
    event = LeaseReleased(lease=held.released(), run_id=command.run_id, reason="serverLost")
    return Decided(drafts=(held.draft(event),))


def lose_runner(command: LoseRunner, context: Context, read: Read) -> Decided:
    """Decide what becomes of a run whose runner is gone (runner protocol, "Loss").

    Raises:
        NotFound: There is no such run.
    """
    state = run_state(read, command.run_id)
    if state.is_terminal or state.queue_status not in ("starting", "running"):
        return Decided(outcome=Outcome.ADOPTED)
    attempt = open_attempt(read, state.run_id)
    applying = effects.applying(read, state.resource_id)
    if applying is not None and effects.is_manual(read, applying):
        return lost_effect(context, state, attempt, applying)
    step = last_step(read, state.run_id)
    steps = step.step_index + 1 if step else 0
    losses = 0 if steps > command.launch_step_total else state.consecutive_errors
    losses += 1 if command.counted and steps <= command.launch_step_total else 0
    is_parking = state.paused == 1 or losses >= NO_PROGRESS_LAUNCHES_MAX
    if is_parking:
        cut = [effects.interrupted(applying, context.at_ms)] if applying is not None else []
        if state.paused:
            return _parked_pause(state, attempt, cut)
        return _no_progress(command, state, attempt, cut)
    delay_ms = NO_PROGRESS_DELAYS_MS[losses] if command.counted else 0
    retry_at = _retry_at(read, state, attempt, step)
    available_at = max(context.at_ms + delay_ms, retry_at)
    drafts: list[Draft] = []
    if applying is not None:
        drafts.append(effects.interrupted(applying, context.at_ms, due_ms=available_at))
    elif retry_at > context.at_ms:
        drafts.extend(effects.scheduled(read, state.resource_id, available_at))
    event = RunRequeued(
        lease=state.released(),
        run_id=state.run_id,
        run=state.run(status=unclaimed_status(attempt)),
        queue=state.queue("queued", available_at=available_at).model_copy(
            update={"consecutive_errors": losses}
        ),
        attempt=attempt.interrupted() if attempt else None,
        interval=attempt.closed() if attempt else None,
        reason=command.detail,
    )
    return Decided(drafts=(state.draft(event), *drafts))


def _retry_at(
    read: Read, state: RunState, attempt: OpenAttempt | None, step: LastStep | None
) -> int:
    """Return when the retry is due that the lost runner was about to wait for, or 0."""
    if attempt is not None or step is None:
        return 0
    due = due_node(read, state, snapshot_of(read, state), step)
    return step.finished_at + due.delay_ms if due is not None else 0


def _parked_pause(state: RunState, attempt: OpenAttempt | None, drafts: list[Draft]) -> Decided:
    """Return the end of a claim that a pause had left with its runner."""
    event = LeaseReleased(
        lease=state.released(),
        run_id=state.run_id,
        queue=state.queue("parked"),
        attempt=attempt.interrupted() if attempt else None,
        interval=attempt.closed() if attempt else None,
        reason="paused",
    )
    return Decided(drafts=(state.draft(event), *drafts))


def _no_progress(
    command: LoseRunner, state: RunState, attempt: OpenAttempt | None, drafts: list[Draft]
) -> Decided:
    """Return the parking of a run whose runners keep dying without a new step."""
    detail = (
        f"{NO_PROGRESS_LAUNCHES_MAX} runners in a row ended without a new step: {command.detail}"
    )
    error = Failure(NO_PROGRESS, detail).blob()
    event = RunWorkerNoProgress(
        lease=state.released(),
        run_id=state.run_id,
        queue=parked(state, NO_PROGRESS, error).model_copy(
            update={"consecutive_errors": NO_PROGRESS_LAUNCHES_MAX}
        ),
        attempt=attempt.interrupted() if attempt else None,
        interval=attempt.closed() if attempt else None,
        code=NO_PROGRESS,
        detail=detail,
    )
    return Decided(drafts=(state.draft(event), *drafts), blobs=(error,))


def lost_effect(
    context: Context,
    state: RunState,
    attempt: OpenAttempt | None,
    effect: effects.EffectState,
    cut: effects.CutShort | None = None,
) -> Decided:
    """Return the parking of a run whose manual effect may or may not have happened.

    Args:
        context: When and by whom.
        state: The run.
        attempt: Its open attempt.
        effect: The manual effect that was under way.
        cut: What is known of its try.

    Returns:
        The run's and the effect's event.
    """
    detail = f"Nobody knows whether {effect.effect_type} happened."
    error = Failure(EFFECT_AMBIGUOUS, detail).blob()
    event = RunEffectAmbiguous(
        lease=state.released(),
        run_id=state.run_id,
        queue=parked(state, EFFECT_AMBIGUOUS, error),
        attempt=attempt.interrupted() if attempt else None,
        interval=attempt.closed() if attempt else None,
        code=EFFECT_AMBIGUOUS,
        detail=detail,
        effect_id=effect.effect_id,
    )
    return Decided(
        drafts=(
            state.draft(event),
            effects.ambiguous(effect, context.at_ms, cut or effects.CutShort()),
        ),
        blobs=(error,),
    )
