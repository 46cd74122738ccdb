"""What an event of a log says, in words: facts, never a stored value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.audit.log import LoggedEvent
from pi_workflows.base.canonical import Json
from pi_workflows.cli.measures import moment
from pi_workflows.cli.run_view import TraceItem
from pi_workflows.cli.trace import described

# Where the type is all that an event of a run says to those who follow it, an auditor wants to
# know what it means.
_MEANINGS: Final[Mapping[str, str]] = {
    "run.started": "its first runner began",
    "run.resumed": "a runner goes on with it",
    "run.resume_requested": "what stopped it was lifted",
    "run.paused": "until somebody resumes it",
    "run.completed": "it ended with its output",
    "run.failed": "it ended with an error",
    "run.timed_out": "its time ran out",
    "run.cancelled": "somebody ended it",
    "run.queue_settled": "the queue took its result",
}
_EFFECTS: Final[Mapping[str, str]] = {
    "effect.reserved": "got its identity; nothing is done yet",
    "effect.attempt_started": "may happen from now on",
    "effect.attempt_finished": "has no result and may be repeated",
    "effect.retry_scheduled": "is tried again later",
    "effect.applied": "happened",
    "effect.rejected": "did not happen",
    "effect.ambiguous": "nobody knows whether it happened",
    "effect.cancelled": "is no longer wanted",
}
_SAID: Final[Mapping[Json, str]] = {
    "confirm": "a person says that it happened",
    "reject": "a person says that it did not happen and shall not",
    "retry": "a person says that it may be tried again",
}


def event_words(event: LoggedEvent) -> str:
    """Return what an event says beyond its type, its run and its node.

    Args:
        event: The event.
    """
    payload = event.payload
    if payload is None:
        return "cannot be read"
    if "effectType" in payload:
        return _effect_words(event, payload)
    if event.event_type == "lease.claimed":
        return f"the server has it, claim {payload.get('generation')}"
    item = TraceItem(
        seq=event.revision,
        at=event.at_ms,
        type=event.event_type,
        node_id=event.node_id,
        attempt_id=event.attempt_id,
        payload=payload,
    )
    return described(item) or _MEANINGS.get(event.event_type, "")


def _effect_words(event: LoggedEvent, payload: Mapping[str, Json]) -> str:
    """Return what an event of an effect says."""
    recovery = payload.get("recovery")
    subject = f"{payload.get('effectType')}{'' if recovery is None else f' ({recovery})'}"
    if "tryNumber" in payload:
        subject = f"{subject}, try {payload['tryNumber']}"
    words = _SAID.get(payload.get("action")) or _EFFECTS.get(event.event_type, "")
    again_ms = payload.get("availableAt")
    if isinstance(again_ms, int) and again_ms > event.at_ms:
        words = f"{words}, not before {moment(again_ms)}"
    return f"{subject}: {words}"
