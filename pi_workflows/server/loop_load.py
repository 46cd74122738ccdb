"""How much of its time the server's loop works, and how much it waits for something to do."""

from __future__ import annotations

import trio

from pi_workflows.base.limits import LOAD_WINDOW_MS
from pi_workflows.base.units import MS_PER_SECOND


class LoopLoad(trio.abc.Instrument):
    """The load of the loop that it is added to, by trio's time.

    A process that gets no processor while it has something to do counts as one that works.
    """

    def __init__(self) -> None:
        """Begin within a loop, as one that has done nothing yet."""
        self._busy = 0.0
        self._working_since: float | None = None
        self._counted_at = trio.current_time()
        self._share = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 - trio's interface
        """Note that there was something to do."""
        if self._working_since is None:
            self._working_since = trio.current_time()

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - trio's interface
        """Count what was done."""
        if self._working_since is not None:
            self._busy += trio.current_time() - self._working_since
            self._working_since = None

    def share(self) -> float:
        """Return which part of the time was work, from 0 to 1, until a moment ago."""
        elapsed = trio.current_time() - self._counted_at
        if elapsed >= LOAD_WINDOW_MS / MS_PER_SECOND:
            self._share = self._busy / elapsed
            self._busy = 0.0
            self._counted_at += elapsed
        return self._share
