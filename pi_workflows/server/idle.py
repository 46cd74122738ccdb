"""When a server that nobody needs leaves: ten minutes after the last thing that happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from pi_workflows.base.limits import IDLE_EXIT_MS
from pi_workflows.base.units import MS_PER_SECOND

_IDLE_SECONDS: Final = IDLE_EXIT_MS / MS_PER_SECOND


class Idle:
    """Notices that nothing happens.

    Args:
        is_busy: Whether there is a connection, a child, work that is due, or a deadline to wait
            for. Whatever makes this false must be followed by `touch`.
    """

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy
        self._last = float("-inf")
        self._touched = trio.Event()

    def touch(self) -> None:
        """Note that a connection or a process began or ended. It never blocks."""
        self._last = trio.current_time()
        self._touched.set()

    async def run(self) -> None:
        """Return ten minutes after the last touch, unless the server is busy then. Never polls."""
        self.touch()
        while True:
            await trio.sleep_until(self._last + _IDLE_SECONDS)
            if trio.current_time() < self._last + _IDLE_SECONDS:
                continue
            if not self._is_busy():
                return
            self._touched = trio.Event()
            await self._touched.wait()
