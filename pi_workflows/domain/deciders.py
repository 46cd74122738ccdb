"""Which decider decides which command."""

from __future__ import annotations

from typing import TypeAlias

from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.boundary import (
    FinishAttempt,
    Requeue,
    StartAttempt,
    WaitForInput,
    finish_attempt,
    requeue,
    start_attempt,
    wait_for_input,
)
from pi_workflows.domain.attempt.progress import RecordUpdate, record_update
from pi_workflows.domain.effect.application import (
    BeginEffect,
    ReserveEffect,
    SettleEffect,
    begin_effect,
    reserve_effect,
    settle_effect,
)
from pi_workflows.domain.effect.recovery import ResolveEffect, resolve_effect
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.request.answer import AnswerCheckpoint, answer_checkpoint
from pi_workflows.domain.run.claim import (
    ClaimRun,
    FailLaunch,
    LoseRunner,
    MarkReady,
    ReleaseClaim,
    claim_run,
    fail_launch,
    lose_runner,
    mark_ready,
    release_claim,
)
from pi_workflows.domain.run.control import (
    CancelRun,
    PauseRun,
    ResumeRun,
    cancel_run,
    pause_run,
    resume_run,
)
from pi_workflows.domain.run.ending import (
    FailRun,
    FinishRun,
    SettleQueue,
    fail_run,
    finish_run,
    settle_queue,
)
from pi_workflows.domain.run.start import RestartRun, StartRun, restart_run, start_run

RunnerCommand: TypeAlias = (
    StartAttempt
    | FinishAttempt
    | Requeue
    | WaitForInput
    | RecordUpdate
    | ReserveEffect
    | BeginEffect
    | SettleEffect
    | FinishRun
)


def decide(command: Command, context: Context, read: Read) -> Decided:
    """Decide one command: the events that are now true, or a refusal.

    Args:
        command: What is asked.
        context: The one `now` it is judged by, and who asks.
        read: Reads of the deciding transaction.

    Returns:
        The events, the values they name and what the caller is told.

    Raises:
        Refused: Nothing changes; the class says what the caller may do next.
        AssertionError: A command that no decider knows.
    """
    if isinstance(command, RunnerCommand):
        return _decide_boundary(command, context, read)
    match command:
        case StartRun():
            return start_run(command, context, read)
        case RestartRun():
            return restart_run(command, context, read)
        case PauseRun():
            return pause_run(command, context, read)
        case ResumeRun():
            return resume_run(command, context, read)
        case CancelRun():
            return cancel_run(command, context, read)
        case AnswerCheckpoint():
            return answer_checkpoint(command, context, read)
        case ResolveEffect():
            return resolve_effect(command, context, read)
        case ClaimRun():
            return claim_run(command, context, read)
        case MarkReady():
            return mark_ready(command, context, read)
        case FailLaunch():
            return fail_launch(command, context, read)
        case LoseRunner():
            return lose_runner(command, context, read)
        case ReleaseClaim():
            return release_claim(command, context, read)
        case FailRun():
            return fail_run(command, context, read)
        case SettleQueue():
            return settle_queue(command, context, read)
        case _:
            raise AssertionError(f"no decider for {type(command).__name__}")


def _decide_boundary(command: RunnerCommand, context: Context, read: Read) -> Decided:
    """Decide a command that a runner proposed."""
    match command:
        case StartAttempt():
            return start_attempt(command, context, read)
        case FinishAttempt():
            return finish_attempt(command, context, read)
        case Requeue():
            return requeue(command, context, read)
        case WaitForInput():
            return wait_for_input(command, context, read)
        case RecordUpdate():
            return record_update(command, context, read)
        case ReserveEffect():
            return reserve_effect(command, context, read)
        case BeginEffect():
            return begin_effect(command, context, read)
        case SettleEffect():
            return settle_effect(command, context, read)
        case FinishRun():
            return finish_run(command, context, read)
