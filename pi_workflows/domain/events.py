"""Every kind of event, by its stored type. A type that is not here is not an event of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pi_workflows.base.errors import Corrupt
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

_KINDS: Final[tuple[type[Event], ...]] = (
    LeaseClaimed,
    LeaseReleased,
    RunQueued,
    RunStarted,
    RunResumed,
    RunRequeued,
    RunParked,
    RunWorkerNoProgress,
    RunSourceChanged,
    RunEffectAmbiguous,
    RunWaiting,
    RunPaused,
    RunResumeRequested,
    RunInteractionTimeoutStarted,
    RunCompleted,
    RunFailed,
    RunTimedOut,
    RunCancelled,
    RunQueueSettled,
    AttemptStarted,
    AttemptSettled,
    IntervalOpened,
    IntervalClosed,
    EntriesLinked,
    UpdateRecorded,
    RequestSubmitted,
    RequestValidated,
    RequestCancelled,
    MessageCreated,
    MessageSent,
    MessageCancelled,
    MessageRecoveryStopped,
    TurnStarted,
    TurnStopped,
    RunSettingsOpened,
    AttemptStatusChanged,
    SettingsChanged,
    FollowUpQueued,
    FollowUpRemoved,
    FollowUpCancelled,
    DecisionRequested,
    DecisionSubmitted,
    DecisionResolved,
    EffectReserved,
    EffectAttemptStarted,
    EffectAttemptFinished,
    EffectApplied,
    EffectRejected,
    EffectAmbiguous,
    EffectCancelled,
    EffectRetryScheduled,
    EffectRecovered,
    SegmentOpened,
    SegmentCompleted,
    SegmentFailed,
)

# In canonical JSON nothing else reads so: no text holds a bare quotation mark, and a value that
# ends in these letters is not followed by a colon. Parsing a payload again costs ten times as much.
_NAME: Final = re.compile(rb'_hash":"((?:[^"\\]|\\.)*)"')

EVENTS: Final[Mapping[str, type[Event]]] = {kind.type: kind for kind in _KINDS}


def decode(event_type: str, payload: bytes) -> Event:
    """Read an event from its stored bytes.

    Args:
        event_type: The stored type, such as `run.queued`.
        payload: The stored canonical JSON.

    Returns:
        The frozen fact.

    Raises:
        Corrupt: The type is unknown, or the payload is not one of that type.
    """
    kind = EVENTS.get(event_type)
    if kind is None:
        raise Corrupt(f"unknown event type {event_type!r}", code="eventShape")
    try:
        return kind.model_validate_json(payload)
    except ValueError as error:
        raise Corrupt(
            f"an event of type {event_type} has another shape", code="eventShape"
        ) from error


def named_blobs(payload: bytes) -> tuple[bytes, ...]:
    """Return what an event keeps alive: the digest of each text member whose name ends in `_hash`.

    Args:
        payload: The event's canonical JSON.

    Returns:
        The digests in order, each once.

    Raises:
        ValueError: Such a member is no digest.
    """
    found = {name.decode() for name in _NAME.findall(payload)}
    return tuple(sorted(map(bytes.fromhex, found)))
