"""Deadlines of decisions: wall time decides, whether the run is paused or nobody is there.

A change of the wall clock is noticed within ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from pi_workflows.base import ids
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import Unavailable
from pi_workflows.base.limits import HEARTBEAT_MS
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.domain.decision.events import DecisionRequested, DecisionResolved
from pi_workflows.domain.decision.resolution import CloseDecision
from pi_workflows.domain.fact import Actor
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.server.log import ServerLog
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.views.decision import Deadline, deadline_of, deadlines

_TRY_AGAIN_MS: Final = 1_000
_AT_ONCE_MAX: Final = 64


class Deadlines:
    """Closes decisions whose time is over.

    Args:
        writer: Where they are closed.
        store: What is read to find them.
        clock: Wall time.
        log: Told when one could not be closed.
        host_id: This server, as who acted.
        closed: Told that a deadline is not to come any more.
    """

    def __init__(
        self,
        *,
        writer: Writer,
        store: Store,
        clock: Clock,
        log: ServerLog,
        host_id: str,
        closed: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._store = store
        self._clock = clock
        self._log = log
        self._host_id = host_id
        self._closed = closed
        self._wake = trio.Event()

    @property
    def is_waiting(self) -> bool:
        """Whether a deadline is still to come, for which somebody has to be there."""
        with self._store.snapshot() as read:
            return bool(deadlines(read, 1))

    def observe(self, answers: Sequence[Answer]) -> None:
        """Take in what was committed: another deadline may be the next one."""
        changed = (DecisionRequested, DecisionResolved)
        if any(isinstance(event.fact, changed) for answer in answers for event in answer.events):
            self._wake.set()

    async def run(self) -> None:
        """Close decisions in time, until cancelled."""
        while True:
            self._wake = wake = trio.Event()
            wait_ms = await self._close_due()
            with trio.move_on_after(wait_ms / MS_PER_SECOND):
                await wake.wait()

    async def _close_due(self) -> float:
        """Close what is due; return the milliseconds after which to look again."""
        with self._store.snapshot() as read:
            found = deadlines(read, _AT_ONCE_MAX)
        now_ms = self._clock.now_ms()
        due = [each for each in found if each.at_ms <= now_ms]
        try:
            closed = [await self._close(deadline) for deadline in due]
        except Unavailable:
            return _TRY_AGAIN_MS
        if any(closed):
            return 0
        later = [each.at_ms - now_ms for each in found if each.at_ms > now_ms]
        # Sleeping is monotonic: a wall clock that was set is looked at again soon.
        return min([*later, HEARTBEAT_MS]) if found else float("inf")

    async def close_due(self, run_id: str) -> None:
        """Close what a run is asked if its time is over, before somebody answers it.

        Raises Unavailable as `Writer.submit`.
        """
        with self._store.snapshot() as read:
            deadline = deadline_of(read, run_id)
        if deadline is not None and deadline.at_ms <= self._clock.now_ms():
            await self._close(deadline)

    async def _close(self, deadline: Deadline) -> bool:
        """Close a decision whose time is over; say whether it is."""
        answer = await self._writer.submit(
            Order(
                name="decision.close",
                commands=(CloseDecision(deadline.run_id, deadline.decision_id),),
                actor=Actor("policy", self._host_id),
                command_id=ids.random_id("command"),
                run_id=deadline.run_id,
            )
        )
        if answer.error is not None:
            self._log.limited("decision.open", run=deadline.run_id, code=answer.code)
            return False
        self._closed()
        return True
