"""Durations, moments and sizes as people at this terminal read them."""

from __future__ import annotations

from datetime import UTC, datetime

from pi_workflows.base.measures import TIME_UNITS, duration, plural, size
from pi_workflows.base.units import MS_PER_SECOND

__all__ = ["age", "duration", "moment", "plural", "size"]


def age(ms: int) -> str:
    """Return how long ago something was, in one unit: `now`, `40 s`, `3 min`, `5 d`."""
    for unit, length_ms in TIME_UNITS:
        if ms >= length_ms:
            return f"{ms // length_ms} {unit}"
    return "now"


def moment(at_ms: int) -> str:
    """Return a moment in local time, to the millisecond, in a form that sorts."""
    local = datetime.fromtimestamp(at_ms / MS_PER_SECOND, UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % MS_PER_SECOND:03d}"
