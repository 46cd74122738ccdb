"""When work that publishes counts will be done, estimated of what it published. Pure.

The engine contract, section 4, `progress`: an epoch ends where phase, unit or total change, where
the count falls, and where work that had ended begins again; of its last eight intervals the median
rate counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final, Literal, TypeAlias

from pi_workflows.base.canonical import Json

Confidence: TypeAlias = Literal["low", "medium", "high"]

_RATES_MAX: Final = 8
_HIGH_INTERVALS_MIN: Final = 5
_HIGH_SPREAD_MAX: Final = 0.25
_MEDIUM_INTERVALS_MIN: Final = 3
_OVER: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Observation:
    """One published account of a track.

    Attributes:
        at_ms: When it was published.
        status: Where the work stands.
        phase: What it does; None for nothing named.
        unit: What is counted.
        completed: How many are done.
        total: How many there are.
        source_finish_ms: When the source itself says that it will be done.
        source_updated_ms: When it said so.
    """

    at_ms: int
    status: str
    phase: str | None = None
    unit: str | None = None
    completed: float | None = None
    total: float | None = None
    source_finish_ms: int | None = None
    source_updated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a track will be done.

    Attributes:
        finish_ms: The estimate itself, wall time.
        earliest_ms: At the rate that a quarter of the intervals was above.
        latest_ms: At the rate that a quarter was below.
        confidence: How much it is to be trusted.
        source: `source` for the work's own word, `rate` for ours.
    """

    finish_ms: int
    earliest_ms: int
    latest_ms: int
    confidence: Confidence
    source: Literal["source", "rate"]

    def document(self) -> dict[str, Json]:
        """Return the estimate as a view shows it."""
        return {
            "finishAt": self.finish_ms,
            "earliestAt": self.earliest_ms,
            "latestAt": self.latest_ms,
            "confidence": self.confidence,
            "source": self.source,
        }


def estimate(observations: Sequence[Observation]) -> Estimate | None:
    """Estimate when a track will be done.

    Args:
        observations: What was published under its key, in order.

    Returns:
        The estimate; None for a track that has ended, counts nothing or has not moved.
    """
    if not observations or observations[-1].status in _OVER:
        return None
    newest = observations[-1]
    if newest.source_finish_ms is not None and _is_fresh(newest):
        finish = newest.source_finish_ms
        return Estimate(finish, finish, finish, "high", "source")
    if newest.completed is None or newest.total is None:
        return None
    rates = _rates(epoch(observations))[-_RATES_MAX:]
    if not rates:
        return None
    left = newest.total - newest.completed
    middle = median(rates)
    low, high = _quartiles(rates)
    if middle <= 0:
        return None
    spread = (high - low) / middle
    return Estimate(
        finish_ms=newest.at_ms + round(left / middle),
        earliest_ms=newest.at_ms + round(left / high),
        latest_ms=newest.at_ms + round(left / low),
        confidence=_confidence(len(rates), spread),
        source="rate",
    )


def epoch(observations: Sequence[Observation]) -> Sequence[Observation]:
    """Return the end of a track that belongs together: its rates are those of one kind of work."""
    start = 0
    for place in range(1, len(observations)):
        before, now = observations[place - 1], observations[place]
        changed = (before.phase, before.unit, before.total) != (now.phase, now.unit, now.total)
        fell = (now.completed or 0) < (before.completed or 0)
        reopened = before.status in _OVER and now.status not in _OVER
        if changed or fell or reopened:
            start = place
    return observations[start:]


def _is_fresh(observation: Observation) -> bool:
    """Whether the work's own estimate is one of now and not one that has passed."""
    finish, said = observation.source_finish_ms, observation.source_updated_ms
    is_ahead = finish is not None and finish >= observation.at_ms
    # An account that says nothing of its age is as old as the account.
    return is_ahead and (said is None or observation.at_ms - said <= _SOURCE_AGE_MS_MAX)


# A source that said nothing new for so long has stopped estimating.
_SOURCE_AGE_MS_MAX: Final = 10 * 60_000


def _rates(observations: Sequence[Observation]) -> list[float]:
    """Return the counts per millisecond of those intervals in which something moved on."""
    found: list[float] = []
    last: Observation | None = None
    for each in observations:
        if each.completed is None:
            continue
        if last is None or last.completed is None:
            last = each
            continue
        done, took = each.completed - last.completed, each.at_ms - last.at_ms
        if done > 0 and took > 0:
            found.append(done / took)
            last = each
    return found


def _quartiles(rates: Sequence[float]) -> tuple[float, float]:
    """Return the 25th and the 75th percentile."""
    if len(rates) == 1:
        return rates[0], rates[0]
    low, _, high = quantiles(rates, n=4, method="inclusive")
    return low, high


def _confidence(intervals: int, spread: float) -> Confidence:
    """Say how much the rates of so many intervals are to be trusted."""
    if intervals >= _HIGH_INTERVALS_MIN and spread <= _HIGH_SPREAD_MAX:
        return "high"
    return "medium" if intervals >= _MEDIUM_INTERVALS_MIN else "low"
