"""Durations, moments and sizes as people at this terminal read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from pi_workflows.base.measures import TIME_UNITS, duration, plural, size

__all__ = ["MOMENT_CHARS", "age", "day_and_time", "duration", "moment", "plural", "second", "size"]

MOMENT_CHARS: Final = len("2026-01-31 00:00:00.000")
"""As long as a moment gets."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A damaged file may have any number for a time.
_BEYOND: Final = "beyond the calendar"
_NO_TIME: Final = "--:--:--.---"
_MS_CHARS: Final = len(".000")


def age(ms: int) -> str:
    """Return how long ago something was, in one unit: `now`, `40 s`, `3 min`, `5 d`."""
    for unit, length_ms in TIME_UNITS:
        if ms >= length_ms:
            return f"{ms // length_ms} {unit}"
    return "now"


def moment(at_ms: int) -> str:
    """Return a moment in local time, to the millisecond, in a form that sorts.

    Args:
        at_ms: Since the epoch; what no year from 1 to 9999 holds is `beyond the calendar`.
    """
    try:
        local = (_EPOCH + timedelta(milliseconds=at_ms)).astimezone()
    except (OverflowError, ValueError, OSError):
        return _BEYOND
    return local.replace(tzinfo=None).isoformat(" ", "milliseconds")


def second(at_ms: int) -> str:
    """Return a moment as `moment` does, to the second."""
    text = moment(at_ms)
    return text if text == _BEYOND else text[:-_MS_CHARS]


def day_and_time(at_ms: int) -> tuple[str, str]:
    """Return the day of a moment, and its time of day to the millisecond."""
    text = moment(at_ms)
    if text == _BEYOND:
        return text, _NO_TIME
    day, _, time = text.partition(" ")
    return day, time
