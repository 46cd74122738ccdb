"""The one source of time.

Wall time stamps events and judges deadlines; monotonic time measures work.
"""

from __future__ import annotations

import time
from typing import Protocol

from pi_workflows.base.units import NS_PER_MS


class Clock(Protocol):
    """What the server reads time from; tests replace it."""

    def now_ms(self) -> int:
        """Return the wall time in milliseconds since the epoch, UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Return a monotonic reading in nanoseconds; only differences mean anything."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Return the wall time in milliseconds since the epoch, UTC."""
        return time.time_ns() // NS_PER_MS

    def monotonic_ns(self) -> int:
        """Return a monotonic reading in nanoseconds; only differences mean anything."""
        return time.monotonic_ns()
