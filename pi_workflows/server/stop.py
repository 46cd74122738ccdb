"""The end of the server: who asked for it, how long it waits, and whether it has begun."""

from __future__ import annotations

import trio

from pi_workflows.base.limits import STOP_GRACE_MS


class Stop:
    """One request to stop, which later ones can only hasten.

    Attributes:
        requested: Set when the server shall stop.
        hurried: Set when it shall no longer wait for effects that are applying.
        grace_ms: How long it waits for them.
    """

    def __init__(self) -> None:
        self.requested = trio.Event()
        self.hurried = trio.Event()
        self.grace_ms = STOP_GRACE_MS

    @property
    def is_requested(self) -> bool:
        """Whether the server takes no more work."""
        return self.requested.is_set()

    def request(self, grace_ms: int = STOP_GRACE_MS) -> None:
        """Ask the server to stop.

        Args:
            grace_ms: How long effects that are applying may take; 0 does not wait, also for an
                earlier request.
        """
        if not self.is_requested:
            self.grace_ms = grace_ms
            self.requested.set()
        if grace_ms == 0:
            self.hurried.set()
