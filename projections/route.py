"""Which projectors an event goes through. Live and replay call these and nothing else.

`raise_revision` comes first, just before the event's row is appended; `apply_event` writes the
domain rows, event by event; `apply_flush` takes in what was appended to the session journals, which
has no event; `apply_view` writes the viewer rows, once over what shares one presentation revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar, cast

from pi_workflows.base.sql import Projection
from pi_workflows.domain.attempt.events import (
    AttemptSettled,
    AttemptStarted,
    EntriesLinked,
    IntervalClosed,
    IntervalOpened,
    UpdateRecorded,
)
from pi_workflows.domain.decision.events import (
    DecisionRequested,
    DecisionResolved,
    DecisionSubmitted,
)
from pi_workflows.domain.effect.events import (
    EffectAmbiguous,
    EffectApplied,
    EffectAttemptFinished,
    EffectAttemptStarted,
    EffectCancelled,
    EffectRecovered,
    EffectRejected,
    EffectReserved,
    EffectRetryScheduled,
)
from pi_workflows.domain.fact import Event, Stored, ViewRef
from pi_workflows.domain.follow_up.events import (
    FollowUpCancelled,
    FollowUpQueued,
    FollowUpRemoved,
)
from pi_workflows.domain.message.events import (
    MessageCancelled,
    MessageCreated,
    MessageRecoveryStopped,
    MessageSent,
    TurnStarted,
    TurnStopped,
)
from pi_workflows.domain.request.events import (
    RequestCancelled,
    RequestSubmitted,
    RequestValidated,
)
from pi_workflows.domain.run.events import (
    LeaseClaimed,
    LeaseReleased,
    RunCancelled,
    RunCompleted,
    RunEffectAmbiguous,
    RunFailed,
    RunInteractionTimeoutStarted,
    RunParked,
    RunPaused,
    RunQueued,
    RunQueueSettled,
    RunRequeued,
    RunResumed,
    RunResumeRequested,
    RunSourceChanged,
    RunStarted,
    RunTimedOut,
    RunWaiting,
    RunWorkerNoProgress,
)
from pi_workflows.domain.session.events import SegmentCompleted, SegmentFailed, SegmentOpened
from pi_workflows.domain.session.journal import Checkpoint, Flush, Progress
from pi_workflows.domain.settings.events import (
    AttemptStatusChanged,
    RunSettingsOpened,
    SettingsChanged,
)
from projections import (
    attempts,
    decisions,
    effects,
    follow_ups,
    lifecycle,
    messages,
    requests,
    runs,
    sessions,
    settings,
    updates,
)
from projections.viewer import checkpoints as viewer_checkpoints
from projections.viewer import deltas as viewer_deltas
from projections.viewer import runs as viewer_runs
from projections.viewer.change import Change

EventT = TypeVar("EventT", bound=Event)
_Projector: TypeAlias = Callable[[Stored, Event, Projection], None]


def _row(
    kind: type[EventT], *projectors: Callable[[Stored, EventT, Projection], None]
) -> tuple[type[Event], tuple[_Projector, ...]]:
    """Join an event class and the projectors that take it; the table forgets which is which."""
    return kind, cast("tuple[_Projector, ...]", projectors)


_RUN: Final = (runs.changed, attempts.changed)

ROUTE: Final[Mapping[type[Event], tuple[_Projector, ...]]] = dict(
    (
        _row(LeaseClaimed, *_RUN),
        _row(LeaseReleased, *_RUN),
        _row(RunQueued, runs.queued),
        _row(RunStarted, *_RUN),
        _row(RunResumed, *_RUN),
        _row(RunRequeued, *_RUN),
        _row(RunParked, *_RUN),
        _row(RunWorkerNoProgress, *_RUN),
        _row(RunSourceChanged, *_RUN),
        _row(RunEffectAmbiguous, *_RUN),
        _row(RunWaiting, *_RUN, requests.asked),
        _row(RunPaused, *_RUN, requests.changed),
        _row(RunResumeRequested, *_RUN, requests.changed),
        _row(RunInteractionTimeoutStarted, *_RUN, requests.changed),
        _row(RunCompleted, *_RUN, requests.closed),
        _row(RunFailed, *_RUN, requests.closed),
        _row(RunTimedOut, *_RUN, requests.closed),
        _row(RunCancelled, *_RUN, requests.closed),
        _row(RunQueueSettled, *_RUN),
        _row(AttemptStarted, attempts.started),
        _row(AttemptSettled, attempts.settled, requests.consumed),
        _row(IntervalOpened, attempts.reopened),
        _row(IntervalClosed, *_RUN),
        _row(EntriesLinked, attempts.linked),
        _row(UpdateRecorded, updates.recorded),
        _row(RequestSubmitted, *_RUN, requests.submitted),
        _row(RequestValidated, *_RUN, requests.changed),
        _row(RequestCancelled, *_RUN, requests.changed),
        _row(MessageCreated, messages.created),
        _row(MessageSent, messages.changed),
        _row(MessageCancelled, messages.changed),
        _row(MessageRecoveryStopped, messages.changed),
        _row(TurnStarted, messages.turn_started),
        _row(TurnStopped, messages.turn_ended),
        _row(RunSettingsOpened, *_RUN, lifecycle.settings_opened, settings.opened),
        _row(AttemptStatusChanged, *_RUN),
        _row(SettingsChanged, settings.changed),
        _row(FollowUpQueued, follow_ups.queued),
        _row(FollowUpRemoved, follow_ups.ended),
        _row(FollowUpCancelled, follow_ups.ended),
        _row(DecisionRequested, decisions.requested),
        _row(DecisionSubmitted, decisions.submitted),
        _row(DecisionResolved, decisions.resolved),
        _row(EffectReserved, effects.reserved),
        _row(EffectAttemptStarted, effects.tried),
        _row(EffectAttemptFinished, effects.closed),
        _row(EffectApplied, effects.closed),
        _row(EffectRejected, effects.closed),
        _row(EffectAmbiguous, effects.closed),
        _row(EffectCancelled, effects.closed),
        _row(EffectRecovered, effects.changed),
        _row(EffectRetryScheduled, effects.changed),
        _row(SegmentOpened, sessions.opened),
        _row(SegmentCompleted, sessions.ended),
        _row(SegmentFailed, sessions.ended),
    )
)


def raise_revision(event: Stored, db: Projection) -> None:
    """Raise the revision of the event's resource and move its lease.

    Before the event is appended.
    """
    lifecycle.raise_revision(event, db)


def apply_event(event: Stored, db: Projection) -> None:
    """Write the domain rows of one event.

    Raises:
        AssertionError: The event has no projector, or a projector did not change exactly the rows
            it must.
    """
    projectors = ROUTE.get(type(event.fact))
    assert projectors is not None, f"no projector for {type(event.fact).__name__}"
    for projector in projectors:
        projector(event, event.fact, db)


def apply_flush(
    flush: Flush,
    progress: Iterable[Progress],
    checkpoints: Iterable[Checkpoint],
    at_ms: int,
    db: Projection,
) -> None:
    """Take in rows that were appended to the session journals.

    Args:
        flush: The rows, which are there already.
        progress: What each of their captures holds now.
        checkpoints: The states at the boundaries that they crossed.
        at_ms: When they were recorded.
        db: The projection.

    Raises:
        AssertionError: A capture had ended, or held more before.
    """
    sessions.flushed(progress, db)
    viewer_checkpoints.recorded(flush.run_id, checkpoints, at_ms, db)


def apply_view(
    view: ViewRef, events: tuple[Stored, ...], flush: Flush | None, at_ms: int, db: Projection
) -> None:
    """Write the viewer rows of one command.

    Args:
        view: The run and its new presentation revision.
        events: The consecutive events that carry it.
        flush: What was appended to the session journals under it; a command has one or the other.
        at_ms: When the command was decided.
        db: The projection.
    """
    viewer_runs.advanced(view, at_ms, db)
    viewer_deltas.recorded(view, Change.of(view.run_id, events, flush), at_ms, db)
