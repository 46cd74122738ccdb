"""Which projectors an event goes through. Live and replay call these and nothing else.

`raise_revision` comes first, just before the event's row is appended; `apply_event` writes the
domain rows, event
by event; `apply_view` writes the viewer rows, once over the events that share one presentation
revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pi_workflows.base.sql import Projection
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted, UpdateRecorded
from pi_workflows.domain.effect.events import (
    EffectAmbiguous,
    EffectApplied,
    EffectAttemptFinished,
    EffectAttemptStarted,
    EffectCancelled,
    EffectRecovered,
    EffectRejected,
    EffectReserved,
)
from pi_workflows.domain.fact import Event, Stored, ViewRef
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.run.events import (
    LeaseClaimed,
    LeaseReleased,
    RunCancelled,
    RunCompleted,
    RunEffectAmbiguous,
    RunFailed,
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
from projections import attempts, effects, lifecycle, requests, runs, updates
from projections.viewer import runs as viewer_runs

# A projector takes the fact class that its row of the table names; the table alone joins the two.
_Projector: TypeAlias = Callable[[Stored, Any, Projection], None]

_RUN: Final[tuple[_Projector, ...]] = (runs.changed, attempts.changed)
_ENDED: Final[tuple[_Projector, ...]] = (*_RUN, requests.closed)

ROUTE: Final[Mapping[type[Event], tuple[_Projector, ...]]] = {
    LeaseClaimed: _RUN,
    LeaseReleased: _RUN,
    RunQueued: (runs.queued,),
    RunStarted: _RUN,
    RunResumed: _RUN,
    RunRequeued: _RUN,
    RunParked: _RUN,
    RunWorkerNoProgress: _RUN,
    RunSourceChanged: _RUN,
    RunEffectAmbiguous: _RUN,
    RunWaiting: (*_RUN, requests.asked),
    RunPaused: _RUN,
    RunResumeRequested: (*_RUN, requests.revised),
    RunCompleted: _ENDED,
    RunFailed: _ENDED,
    RunTimedOut: _ENDED,
    RunCancelled: _ENDED,
    RunQueueSettled: _RUN,
    AttemptStarted: (attempts.started,),
    AttemptSettled: (attempts.settled, requests.consumed),
    UpdateRecorded: (updates.recorded,),
    RequestSubmitted: (*_RUN, requests.submitted),
    EffectReserved: (effects.reserved,),
    EffectAttemptStarted: (effects.tried,),
    EffectAttemptFinished: (effects.closed,),
    EffectApplied: (effects.closed,),
    EffectRejected: (effects.closed,),
    EffectAmbiguous: (effects.closed,),
    EffectCancelled: (effects.closed,),
    EffectRecovered: (effects.changed,),
}


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


def apply_view(view: ViewRef, events: tuple[Stored, ...], db: Projection) -> None:
    """Write the viewer rows of one command.

    Args:
        view: The run and its new presentation revision.
        events: The consecutive events that carry it.
        db: The projection.
    """
    viewer_runs.advanced(view, events, db)
