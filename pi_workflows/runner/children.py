"""The runner's shell processes: the server records each before it executes anything."""

from __future__ import annotations

from typing import Literal

import trio

from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.protocol.runner import Child
from pi_workflows.runner.channel import Channel


class Children:
    """Reports shell processes over the channel."""

    def __init__(self, channel: Channel) -> None:
        """Report on a channel whose `child` frames are given to `registered`."""
        self._channel = channel
        self._waiting: dict[int, trio.Event] = {}

    async def register(self, pid: int, start_identity: str, attempt_id: str) -> None:
        """Report a process that leads its own group, and wait until the server has recorded it.

        Args:
            pid: The process.
            start_identity: When it started.
            attempt_id: The attempt that it works for.
        """
        recorded = self._waiting[pid] = trio.Event()
        try:
            self._send("starting", pid, start_identity, attempt_id)
            await recorded.wait()
        finally:
            del self._waiting[pid]

    def ended(self, pid: int, start_identity: str, attempt_id: str) -> None:
        """Report that nothing of a process and its group is left."""
        self._send("ended", pid, start_identity, attempt_id)

    def registered(self, child: Child) -> None:
        """Take the server's word that a process is recorded.

        Raises:
            ProtocolViolation: It says something else.
        """
        if child.state != "registered":
            raise ProtocolViolation("a child frame that is no registration", code="childState")
        waiting = self._waiting.get(child.pid)
        if waiting is not None:
            waiting.set()

    def _send(
        self, state: Literal["starting", "ended"], pid: int, start_identity: str, attempt_id: str
    ) -> None:
        self._channel.send(
            Child(
                state=state,
                pid=pid,
                start_identity=start_identity,
                process_group=pid,
                attempt_id=attempt_id,
            )
        )
