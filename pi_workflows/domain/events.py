"""Every kind of event, by its stored type. A type that is not here is not an event of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
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
from pi_workflows.domain.fact import Event
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
    RunCompleted,
    RunFailed,
    RunTimedOut,
    RunCancelled,
    RunQueueSettled,
    AttemptStarted,
    AttemptSettled,
    UpdateRecorded,
    RequestSubmitted,
    EffectReserved,
    EffectAttemptStarted,
    EffectAttemptFinished,
    EffectApplied,
    EffectRejected,
    EffectAmbiguous,
    EffectCancelled,
    EffectRecovered,
)

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


def named_blobs(payload: Json) -> Iterator[str]:
    """Yield the hex digest of every blob that a payload names: each text member ending in `_hash`.

    Args:
        payload: The decoded payload of an event.

    Yields:
        Digests in no order; one may come twice.
    """
    if isinstance(payload, dict):
        for name, value in payload.items():
            if name.endswith("_hash") and isinstance(value, str):
                yield value
            else:
                yield from named_blobs(value)
    elif isinstance(payload, list):
        for item in payload:
            yield from named_blobs(item)
