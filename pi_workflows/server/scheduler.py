"""Which run gets a runner next: those that are due, the longest due first, as many as allowed.

Wall time decides what is due; a change of the wall clock is noticed within ten seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from pi_workflows.base import ids
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import Outcome, Unavailable
from pi_workflows.base.limits import HEARTBEAT_MS, RUN_CLAIM_MS
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.run.claim import ClaimRun
from pi_workflows.kernel.order import Answer, Claimant, Order
from pi_workflows.server.claims import HeldRun
from pi_workflows.server.log import ServerLog
from pi_workflows.server.supervisor import Supervisor
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.store.records import Permit
from pi_workflows.views.schedule import queued_runs

_TRY_AGAIN_MS: Final = 1_000


class Scheduler:
    """Claims runs and hands them to the supervisor.

    Args:
        supervisor: Works on claimed runs.
        writer: Where claims are made.
        store: What is read to find the next run.
        clock: Wall time.
        log: Told when a claim is refused.
        host_id: This server, as the owner of claims.
        runners_max: Runs that execute at once.
    """

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        writer: Writer,
        store: Store,
        clock: Clock,
        log: ServerLog,
        host_id: str,
        runners_max: int,
    ) -> None:
        self._supervisor = supervisor
        self._writer = writer
        self._store = store
        self._clock = clock
        self._log = log
        self._host_id = host_id
        self.runners_max = runners_max
        self._wake = trio.Event()
        self._is_closed = False

    @property
    def runner_count(self) -> int:
        """How many runs execute now, those whose runner is being ended included."""
        return len(self._supervisor.runs)

    @property
    def is_idle(self) -> bool:
        """Whether no run executes, waits for a runner, or becomes due later."""
        if self._supervisor.runs:
            return False
        with self._store.snapshot() as read:
            return not queued_runs(read, 1)

    def live_runs(self) -> frozenset[str]:
        """Return the runs whose exact process lives under an unexpired claim."""
        return self._supervisor.live_runs()

    def observe(self, answers: Sequence[Answer]) -> None:
        """Take in what was committed. The writer calls it before any reply leaves."""
        self._supervisor.observe(answers)
        if any(answer.events for answer in answers):
            self._wake.set()

    def close(self) -> None:
        """Claim nothing more; `run` ends when the runners that there are have ended."""
        self._is_closed = True
        self._wake.set()

    async def run(self) -> None:
        """Give runners to due runs until `close` was called and every runner has ended."""
        async with trio.open_nursery() as nursery:
            while not self._is_closed:
                self._wake = wake = trio.Event()
                wait_ms = await self._fill(nursery)
                with trio.move_on_after(wait_ms / MS_PER_SECOND):
                    await wake.wait()

    async def _fill(self, nursery: trio.Nursery) -> float:
        """Start what is due and has room; return the milliseconds after which to look again."""
        busy = self._supervisor.runs
        room = self.runners_max - len(busy)
        if room <= 0:
            return float("inf")
        with self._store.snapshot() as read:
            queued = queued_runs(read, room + len(busy) + 1)
        # A run whose last runner is still being ended waits for that, not for capacity.
        waiting = [each for each in queued if each.run_id not in busy]
        now_ms = self._clock.now_ms()
        due = [each.run_id for each in waiting if each.available_at <= now_ms]
        for run_id in due[:room]:
            try:
                held = await self._claim(run_id)
            except Unavailable:
                return _TRY_AGAIN_MS
            if held is not None:
                self._supervisor.begin(nursery, held, self._ended)
        later = [each.available_at - now_ms for each in waiting if each.available_at > now_ms]
        if not later:
            return float("inf")
        # Sleeping is monotonic: a wall clock that was set is looked at again soon.
        return min(later[0], HEARTBEAT_MS)

    async def _claim(self, run_id: str) -> HeldRun | None:
        """Claim a run; None when it is not due any more."""
        expires_at_ms = self._clock.now_ms() + RUN_CLAIM_MS
        token = ids.random_token()
        answer = await self._writer.submit(
            Order(
                name="run.claim",
                commands=(ClaimRun(run_id),),
                actor=Actor("host", self._host_id),
                command_id=ids.random_id("command"),
                claimant=Claimant(self._host_id, token, expires_at_ms),
                run_id=run_id,
            )
        )
        lease = answer.events[0].fact.lease if answer.events else None
        if answer.outcome is not Outcome.ACCEPTED or answer.revision is None or lease is None:
            self._log.limited("run.unclaimed", run=run_id, code=answer.code)
            return None
        permit = Permit(
            resource_id=ids.resource_id("run", run_id),
            owner_type="host",
            owner_id=self._host_id,
            token=token,
            generation=lease.generation,
        )
        return HeldRun(run_id, permit, revision=answer.revision, expires_at_ms=expires_at_ms)

    def _ended(self) -> None:
        """Look for the next run: a runner has ended."""
        self._wake.set()
