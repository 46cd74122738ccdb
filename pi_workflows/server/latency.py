"""What the disk allows: how long the newest commits took, and how many pieces each held."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from pi_workflows.protocol.server import CommitStats

# Enough for a p99, little enough that the figures are of now.
_SAMPLES_MAX: Final = 1_024
_NS_PER_US: Final = 1_000


class CommitLatency:
    """The newest commits, from BEGIN until COMMIT returned."""

    def __init__(self) -> None:
        self._durations_us: deque[int] = deque(maxlen=_SAMPLES_MAX)
        self._sizes: deque[int] = deque(maxlen=_SAMPLES_MAX)

    def add(self, duration_ns: int, group_size: int) -> None:
        """Note one commit."""
        self._durations_us.append(max(0, duration_ns) // _NS_PER_US)
        self._sizes.append(group_size)

    def report(self) -> CommitStats:
        """Return the figures; all zero before the first commit."""
        durations = sorted(self._durations_us)
        return CommitStats(
            p50_us=percentile(durations, 50),
            p99_us=percentile(durations, 99),
            group_mean=sum(self._sizes) / len(self._sizes) if self._sizes else 0.0,
            group_max=max(self._sizes, default=0),
            samples=len(durations),
        )


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the value that so many percent of the ordered values do not exceed; 0 of none."""
    if not ordered:
        return 0
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
