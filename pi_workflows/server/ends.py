"""Telling sessions that their runs have ended: a later transition, tried again at each start.

The engine contract, section 2: terminal state commits first, and a message that cannot be made
undoes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import trio

from pi_workflows.base import ids
from pi_workflows.base.errors import Corrupt, Unavailable
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.message.terminal import TellEnd
from pi_workflows.domain.run.events import RunEnded
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.server.log import ServerLog
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.views.session_view import session_of_run
from pi_workflows.views.turns import untold_ends

_TRY_AGAIN_MS: Final = 1_000


class Ends:
    """The runs whose end is still to be told.

    Args:
        writer: Where it is told.
        store: What is read of a run that ended.
        log: Told when an end cannot be told.
        host_id: This server.
    """

    def __init__(self, *, writer: Writer, store: Store, log: ServerLog, host_id: str) -> None:
        self._writer = writer
        self._store = store
        self._log = log
        self._actor = Actor("system", host_id)
        self._left: deque[str] = deque()
        self._wake = trio.Event()

    def load(self) -> None:
        """Take over what an earlier server had not told."""
        with self._store.snapshot() as read:
            self._left.extend(untold_ends(read))

    def observe(self, answers: Sequence[Answer]) -> None:
        """Note the runs that have ended. The writer calls it before any reply leaves."""
        for answer in answers:
            for event in answer.events:
                if isinstance(event.fact, RunEnded):
                    self._left.append(event.fact.run_id)
                    self._wake.set()

    async def run(self) -> None:
        """Tell each end once, until cancelled."""
        while True:
            self._wake = wake = trio.Event()
            while self._left:
                try:
                    await self._tell(self._left[0])
                except Unavailable as error:
                    self._log.limited("end.unavailable", code=error.reason_code)
                    await trio.sleep(_TRY_AGAIN_MS / MS_PER_SECOND)
                    continue
                self._left.popleft()
            await wake.wait()

    async def _tell(self, run_id: str) -> None:
        """Tell a run's end to its session, if it has one. What is damaged stays untold."""
        try:
            with self._store.snapshot() as read:
                session_id = session_of_run(read, run_id)
        except Corrupt as error:
            self._log.limited("end.untold", run=run_id, code=error.reason_code)
            return
        if session_id is None:
            return
        answer = await self._writer.submit(
            Order(
                name="run.tell_end",
                commands=(TellEnd(run_id),),
                actor=self._actor,
                command_id=ids.random_id("command"),
                run_id=run_id,
            )
        )
        if answer.error is not None:
            self._log.limited("end.untold", run=run_id, code=answer.code)
