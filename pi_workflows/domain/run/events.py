"""Facts about a run, its place in the queue and its claim.

Most of them share parts: what changed in the run, in the queue, in the open attempt, in its
interval.
"""

from __future__ import annotations

from typing import ClassVar

from pi_workflows.domain.fact import Event
from pi_workflows.domain.rows import (
    AttemptChange,
    BindingRow,
    ClosedInterval,
    DefinitionRow,
    ProjectRow,
    QueueChange,
    QueueRow,
    RequestChange,
    RequestRow,
    RunChange,
    RunRow,
    SourceRow,
    SubmissionChange,
)


class RunEvent(Event):
    """What an event of the run's own resource may change. A part that is absent stays as it is."""

    run_id: str
    run: RunChange | None = None
    queue: QueueChange | None = None
    attempt: AttemptChange | None = None
    interval: ClosedInterval | None = None


class InteractionEvent(RunEvent):
    """An event that may also change what is asked of a session or person, and its answers."""

    request: RequestChange | None = None
    submissions: tuple[SubmissionChange, ...] = ()


class RunQueued(Event):
    """A run was accepted and waits for capacity."""

    type: ClassVar[str] = "run.queued"

    run: RunRow
    project: ProjectRow
    definition: DefinitionRow
    sources: tuple[SourceRow, ...]
    binding: BindingRow
    queue: QueueRow


class LeaseClaimed(RunEvent):
    """The server claimed the run for a runner."""

    type: ClassVar[str] = "lease.claimed"

    mode: str


class LeaseReleased(RunEvent):
    """The run's claim ended without a change of its own status."""

    type: ClassVar[str] = "lease.released"

    reason: str


class RunStarted(RunEvent):
    """The run's first runner verified its sources and began."""

    type: ClassVar[str] = "run.started"


class RunResumed(RunEvent):
    """A later runner verified its sources and goes on."""

    type: ClassVar[str] = "run.resumed"


class RunRequeued(RunEvent):
    """The run waits for capacity again: its runner was lost, or a retry is due later."""

    type: ClassVar[str] = "run.requeued"

    reason: str


class RunParked(RunEvent):
    """The run stands still until a person does something."""

    type: ClassVar[str] = "run.parked"

    code: str
    detail: str


class RunWorkerNoProgress(RunParked):
    """Three runners in a row were lost without a new step."""

    type: ClassVar[str] = "run.worker_no_progress"


class RunSourceChanged(RunParked):
    """The workflow's source differs from the one that the run started with."""

    type: ClassVar[str] = "run.source_changed"


class RunEffectAmbiguous(RunParked):
    """Nobody knows whether an external effect happened; a person has to say."""

    type: ClassVar[str] = "run.effect_ambiguous"

    effect_id: str


class RunWaiting(RunEvent):
    """The run asked for an answer and waits for it."""

    type: ClassVar[str] = "run.waiting"

    request: RequestRow


class RunPaused(InteractionEvent):
    """A person or client paused the run."""

    type: ClassVar[str] = "run.paused"

    detail: str


class RunResumeRequested(InteractionEvent):
    """The pause, or what parked the run, was lifted."""

    type: ClassVar[str] = "run.resume_requested"


class RunInteractionTimeoutStarted(InteractionEvent):
    """The time for an answer ran out; a runner records that."""

    type: ClassVar[str] = "run.interaction_timeout_started"


class RunEnded(RunEvent):
    """The parts that every terminal event of a run has."""

    requests: tuple[RequestChange, ...] = ()
    submissions: tuple[SubmissionChange, ...] = ()
    settle_effect_id: str | None = None


class RunCompleted(RunEnded):
    """The run reached its end; its output is the final node's."""

    type: ClassVar[str] = "run.completed"


class RunFailed(RunEnded):
    """The run ended with an error."""

    type: ClassVar[str] = "run.failed"


class RunTimedOut(RunEnded):
    """A node's time ran out and no route took care of it."""

    type: ClassVar[str] = "run.timed_out"


class RunCancelled(RunEnded):
    """The run was cancelled."""

    type: ClassVar[str] = "run.cancelled"


class RunQueueSettled(RunEvent):
    """The queue took over the run's terminal result."""

    type: ClassVar[str] = "run.queue_settled"

    effect_id: str
