"""Clocks that tests move, alone or together with trio's."""

from __future__ import annotations

import trio

START_MS = 1_700_000_000_000


class FixedClock:
    """Time that stands still until a test moves it."""

    def __init__(self) -> None:
        self._elapsed_ms = 0

    def now_ms(self) -> int:
        """Return the wall time that the test set."""
        return START_MS + self._elapsed_ms

    def monotonic_ns(self) -> int:
        """Return the monotonic reading that the test set."""
        return self._elapsed_ms * 1_000_000

    def advance_ms(self, milliseconds: int) -> None:
        """Let both run on."""
        self._elapsed_ms += milliseconds


class TrioClock:
    """Time as trio has it: under a mock clock a sleep of a minute is a minute for everybody."""

    def now_ms(self) -> int:
        """Return the wall time."""
        return START_MS + round(_seconds() * 1_000)

    def monotonic_ns(self) -> int:
        """Return a monotonic reading."""
        return round(_seconds() * 1_000_000_000)


def _seconds() -> float:
    """Return trio's time, also to a thread that trio started."""
    if trio.lowlevel.in_trio_run():
        return trio.current_time()
    return trio.from_thread.run_sync(trio.current_time)


class SleepyClock(TrioClock):
    """Trio's time, and a wall clock that went on while the machine slept.

    Attributes:
        slept_ms: How long it slept.
    """

    slept_ms = 0

    def now_ms(self) -> int:
        """Return the wall time."""
        return super().now_ms() + self.slept_ms
