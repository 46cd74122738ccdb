"""How a story tells each kind of event. A kind that is not here is quiet, or is a mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

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
from pi_workflows.domain.fact import Event
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
from pi_workflows.domain.settings.events import (
    AttemptStatusChanged,
    RunSettingsOpened,
    SettingsChanged,
)
from pi_workflows.views import story_decisions as decisions
from pi_workflows.views import story_effects as effects
from pi_workflows.views import story_messages as messages
from pi_workflows.views import story_runs as runs
from pi_workflows.views import story_settings as settings
from pi_workflows.views.story_narrator import Narrator

Teller: TypeAlias = Callable[[Narrator, Event], None]
E = TypeVar("E", bound=Event)


def _row(kind: type[E], teller: Callable[[Narrator, E], None]) -> tuple[type[Event], Teller]:
    """Return how a kind of event is told."""

    def told(narrator: Narrator, fact: Event) -> None:
        assert isinstance(fact, kind)
        teller(narrator, fact)

    return kind, told


TELLERS: Final[Mapping[type[Event], Teller]] = dict(
    (
        _row(RunQueued, runs.queued),
        _row(LeaseClaimed, runs.claimed),
        _row(LeaseReleased, runs.released),
        _row(RunStarted, runs.taken),
        _row(RunResumed, runs.taken),
        _row(RunRequeued, runs.requeued),
        _row(RunParked, runs.parked),
        _row(RunWorkerNoProgress, runs.parked),
        _row(RunSourceChanged, runs.parked),
        _row(RunEffectAmbiguous, runs.parked),
        _row(RunWaiting, runs.waiting),
        _row(RunPaused, runs.paused),
        _row(RunResumeRequested, runs.resume_requested),
        _row(RunCompleted, runs.ended),
        _row(RunFailed, runs.ended),
        _row(RunTimedOut, runs.ended),
        _row(RunCancelled, runs.ended),
        _row(AttemptStarted, runs.attempt_started),
        _row(AttemptSettled, runs.attempt_settled),
        _row(RequestSubmitted, runs.submitted),
        _row(RequestValidated, messages.validated),
        _row(RequestCancelled, messages.given_up),
        _row(RunInteractionTimeoutStarted, messages.expired),
        _row(MessageCreated, messages.created),
        _row(MessageSent, messages.sent),
        _row(MessageRecoveryStopped, messages.recovery_stopped),
        _row(TurnStarted, messages.turn_started),
        _row(TurnStopped, messages.turn_ended),
        _row(DecisionRequested, decisions.requested),
        _row(DecisionSubmitted, decisions.submitted),
        _row(DecisionResolved, decisions.resolved),
        _row(RunSettingsOpened, settings.opened),
        _row(SettingsChanged, settings.changed),
        _row(AttemptStatusChanged, settings.outdated),
        _row(FollowUpQueued, settings.queued),
        _row(FollowUpRemoved, settings.removed),
        _row(FollowUpCancelled, settings.cancelled),
        _row(EffectReserved, effects.reserved),
        _row(EffectAttemptStarted, effects.attempt_started),
        _row(EffectAttemptFinished, effects.attempt_finished),
        _row(EffectApplied, effects.applied),
        _row(EffectRejected, effects.rejected),
        _row(EffectAmbiguous, effects.ambiguous),
        _row(EffectCancelled, effects.cancelled),
        _row(EffectRecovered, effects.recovered),
    )
)
"""How each kind of event is told."""

QUIET: Final[frozenset[type[Event]]] = frozenset(
    {
        RunQueueSettled,
        UpdateRecorded,
        IntervalOpened,
        IntervalClosed,
        EntriesLinked,
        EffectRetryScheduled,
        MessageCancelled,
        SegmentOpened,
        SegmentCompleted,
        SegmentFailed,
    }
)
"""What says nothing to people: the queue's bookkeeping, when an effect is tried again, which its
run tells, progress, which later progress ends, when the session's time runs, that something need
not be told any more, and that a session is captured, which changes nothing for its run."""


def tell(narrator: Narrator, fact: Event) -> None:
    """Tell an event, and learn from it.

    Args:
        narrator: Turned to the event.
        fact: The event.
    """
    if type(fact) not in QUIET:
        TELLERS[type(fact)](narrator, fact)
    narrator.learn(fact)
