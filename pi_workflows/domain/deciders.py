"""Which decider decides which command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar, cast

from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.boundary import (
    FinishAttempt,
    Requeue,
    StartAttempt,
    finish_attempt,
    requeue,
    start_attempt,
)
from pi_workflows.domain.attempt.notice import Notify, notify
from pi_workflows.domain.attempt.progress import RecordUpdate, record_update
from pi_workflows.domain.attempt.question import WaitForInput, wait_for_input
from pi_workflows.domain.decision.resolution import (
    AnswerDecision,
    CloseDecision,
    answer_decision,
    close_decision,
)
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
from pi_workflows.domain.follow_up.queue import (
    QueueFollowUp,
    RemoveFollowUp,
    queue_follow_up,
    remove_follow_up,
)
from pi_workflows.domain.message.branch import ReportBranch, report_branch
from pi_workflows.domain.message.recovery import StopRecovery, stop_recovery
from pi_workflows.domain.message.terminal import TellEnd, tell_end
from pi_workflows.domain.message.turn import (
    EndTurn,
    ResumeClock,
    StartTurn,
    SuspendClock,
    end_turn,
    resume_clock,
    start_turn,
    suspend_clock,
)
from pi_workflows.domain.request.answer import AnswerCheckpoint, answer_checkpoint
from pi_workflows.domain.request.closing import ExpireRequest, expire_request
from pi_workflows.domain.request.submission import (
    JudgeSubmission,
    SubmitCandidate,
    SubmitText,
    judge_submission,
    submit_candidate,
    submit_text,
)
from pi_workflows.domain.request.update import PublishUpdate, publish_update
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
from pi_workflows.domain.session.capture import (
    BindSession,
    EndCapture,
    RecordEntries,
    RecordEvents,
    bind_session,
    end_capture,
    record_entries,
    record_events,
)
from pi_workflows.domain.settings.change import (
    ChangeSettings,
    OpenSettings,
    change_settings,
    open_settings,
)

CommandT = TypeVar("CommandT", bound=Command)
_Decider: TypeAlias = Callable[[Command, Context, Read], Decided]


def _row(
    kind: type[CommandT], decider: Callable[[CommandT, Context, Read], Decided]
) -> tuple[type[Command], _Decider]:
    """Join a command class and the decider that takes it; the table forgets which is which."""
    return kind, cast("_Decider", decider)


DECIDERS: Final[Mapping[type[Command], _Decider]] = dict(
    (
        _row(StartRun, start_run),
        _row(RestartRun, restart_run),
        _row(PauseRun, pause_run),
        _row(ResumeRun, resume_run),
        _row(CancelRun, cancel_run),
        _row(AnswerCheckpoint, answer_checkpoint),
        _row(AnswerDecision, answer_decision),
        _row(CloseDecision, close_decision),
        _row(SubmitCandidate, submit_candidate),
        _row(JudgeSubmission, judge_submission),
        _row(SubmitText, submit_text),
        _row(PublishUpdate, publish_update),
        _row(ExpireRequest, expire_request),
        _row(ReportBranch, report_branch),
        _row(StartTurn, start_turn),
        _row(EndTurn, end_turn),
        _row(SuspendClock, suspend_clock),
        _row(ResumeClock, resume_clock),
        _row(TellEnd, tell_end),
        _row(StopRecovery, stop_recovery),
        _row(ResolveEffect, resolve_effect),
        _row(ClaimRun, claim_run),
        _row(MarkReady, mark_ready),
        _row(FailLaunch, fail_launch),
        _row(LoseRunner, lose_runner),
        _row(ReleaseClaim, release_claim),
        _row(StartAttempt, start_attempt),
        _row(FinishAttempt, finish_attempt),
        _row(Requeue, requeue),
        _row(WaitForInput, wait_for_input),
        _row(Notify, notify),
        _row(RecordUpdate, record_update),
        _row(OpenSettings, open_settings),
        _row(ChangeSettings, change_settings),
        _row(QueueFollowUp, queue_follow_up),
        _row(RemoveFollowUp, remove_follow_up),
        _row(ReserveEffect, reserve_effect),
        _row(BeginEffect, begin_effect),
        _row(SettleEffect, settle_effect),
        _row(FinishRun, finish_run),
        _row(FailRun, fail_run),
        _row(SettleQueue, settle_queue),
        _row(BindSession, bind_session),
        _row(RecordEntries, record_entries),
        _row(RecordEvents, record_events),
        _row(EndCapture, end_capture),
    )
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
    decider = DECIDERS.get(type(command))
    assert decider is not None, f"no decider for {type(command).__name__}"
    return decider(command, context, read)
