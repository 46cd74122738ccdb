"""Which decider decides which command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

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

# A decider takes the command class that its row of the table names; the table alone joins the two.
_Decider: TypeAlias = Callable[[Any, Context, Read], Decided]

DECIDERS: Final[Mapping[type[Command], _Decider]] = {
    StartRun: start_run,
    RestartRun: restart_run,
    PauseRun: pause_run,
    ResumeRun: resume_run,
    CancelRun: cancel_run,
    AnswerCheckpoint: answer_checkpoint,
    ResolveEffect: resolve_effect,
    ClaimRun: claim_run,
    MarkReady: mark_ready,
    FailLaunch: fail_launch,
    LoseRunner: lose_runner,
    ReleaseClaim: release_claim,
    StartAttempt: start_attempt,
    FinishAttempt: finish_attempt,
    Requeue: requeue,
    WaitForInput: wait_for_input,
    RecordUpdate: record_update,
    ReserveEffect: reserve_effect,
    BeginEffect: begin_effect,
    SettleEffect: settle_effect,
    FinishRun: finish_run,
    FailRun: fail_run,
    SettleQueue: settle_queue,
}


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
    decider = DECIDERS.get(type(command))
    assert decider is not None, f"no decider for {type(command).__name__}"
    return decider(command, context, read)
