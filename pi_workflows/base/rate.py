"""A steady rate with a burst above it, in monotonic time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pi_workflows.base.clock import Clock

_NS_PER_SECOND: Final = 1_000_000_000


class Rate:
    """Counts what may happen: one token each, refilled steadily; without one it is refused."""

    def __init__(self, clock: Clock, *, per_second: int, burst: int) -> None:
        """Begin with a full burst.

        Args:
            clock: Where time comes from.
            per_second: Tokens that come back each second.
            burst: Tokens that can be there at once.
        """
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._tokens = float(burst)
        self._filled_ns = clock.monotonic_ns()

    def take(self) -> bool:
        """Take a token; False when none is left."""
        now_ns = self._clock.monotonic_ns()
        gained = (now_ns - self._filled_ns) * self._per_second / _NS_PER_SECOND
        self._tokens = min(self._tokens + gained, float(self._burst))
        self._filled_ns = now_ns
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
