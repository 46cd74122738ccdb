"""Taking over from a server that is gone, before anybody is listened to.

The decision on taking over: the holder of the lock ends what the earlier server left running, then
ends its claims by the authority of the new epoch, and only then is anything claimed again. A loss
of the server never counts against a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base import ids
from pi_workflows.base.clock import Clock
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.message.turn import SuspendClock
from pi_workflows.domain.run.claim import LoseRunner, ReleaseClaim
from pi_workflows.domain.run.ending import SettleQueue
from pi_workflows.kernel.order import Answer, Chore, Order
from pi_workflows.server.log import ServerLog
from pi_workflows.server.registry import Registry
from pi_workflows.server.writer import Writer
from pi_workflows.store import volatile
from pi_workflows.store.database import Store
from pi_workflows.store.leases import owned_claims
from pi_workflows.store.transaction import Transaction
from pi_workflows.store.volatile import LiveWorker
from pi_workflows.views.schedule import claimed_run, unfinished_runs, unsettled_runs
from pi_workflows.views.turns import running_clocks

_LOST = "the server was lost"


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery found.

    Attributes:
        processes_left: Processes of the earlier server that could not be ended.
        claims: Claims that were released.
        runs: Runs whose runner was lost with the server.
        settled: Ended runs whose place in the queue was settled.
    """

    processes_left: int
    claims: int
    runs: tuple[str, ...]
    settled: tuple[str, ...]


class Recovery:
    """What a new server does first.

    Args:
        store: The database.
        writer: Where the ends of claims go; it runs already.
        registry: The earlier server's children.
        clock: Dates the ends of its runners.
        log: Told what was found.
        host_id: This server, which owns nothing yet.
    """

    def __init__(
        self,
        *,
        store: Store,
        writer: Writer,
        registry: Registry,
        clock: Clock,
        log: ServerLog,
        host_id: str,
    ) -> None:
        self._store = store
        self._writer = writer
        self._registry = registry
        self._clock = clock
        self._log = log
        self._actor = Actor("system", host_id)

    async def run(self) -> Recovered:
        """End the processes, then the claims, then say what that means for each run.

        Returns:
            What was found.

        Raises:
            Unavailable: The store could not take it: the server cannot start.
        """
        left = await self._end_processes()
        claims = await self._release_claims()
        with self._store.snapshot() as read:
            unfinished = unfinished_runs(read)
            unsettled = unsettled_runs(read)
            clocks = running_clocks(read)
        for run in unfinished:
            lost = LoseRunner(run.run_id, run.launch_step_total, counted=False, detail=_LOST)
            await self._order("run.lose", lost)
        for run_id in unsettled:
            await self._order("run.settle_queue", SettleQueue(run_id))
        for clock in clocks:
            stopped = SuspendClock(clock.run_id, clock.attempt_id, 0, "serverLost")
            await self._order("turn.suspend", stopped)
        found = Recovered(left, claims, tuple(run.run_id for run in unfinished), tuple(unsettled))
        self._log.write(
            "server.recovered",
            processes_left=left,
            claims=claims,
            runs=len(found.runs),
            settled=len(found.settled),
        )
        return found

    async def _end_processes(self) -> int:
        """End every process of an earlier server; return how many could not be ended."""
        with self._store.snapshot() as read:
            workers = volatile.live_workers(read)
        left = await self._registry.recover([worker.worker_epoch for worker in workers])
        for process in left:
            self._log.write("process.left", pid=process.pid)
        if workers:
            await self._writer.submit(Chore(lambda tx: self._end_workers(tx, workers)))
        return len(left)

    def _end_workers(self, tx: Transaction, workers: list[LiveWorker]) -> None:
        """Keep that these runners ended with their server."""
        now_ms = self._clock.now_ms()
        for worker in workers:
            volatile.worker_ended(tx, worker.worker_epoch, "orphaned", now_ms)

    async def _release_claims(self) -> int:
        """End every claim of an earlier server; return how many there were."""
        with self._store.snapshot() as read:
            owned = [claim for claim in owned_claims(read) if claim.owner_type == "host"]
            claimed = [claimed_run(read, claim.resource_id) for claim in owned]
        found = [run for run in claimed if run is not None]
        assert len(found) == len(owned), "a claim of the server on something that is no run's"
        for run in found:
            await self._order("run.release", ReleaseClaim(run.run_id, run.effect_id))
        return len(found)

    async def _order(self, name: str, command: Command) -> Answer:
        """Decide one command of the recovery, which no domain rule refuses."""
        answer = await self._writer.submit(
            Order(
                name=name,
                commands=(command,),
                actor=self._actor,
                command_id=ids.random_id("command"),
                run_id=command.run_id,
            )
        )
        assert answer.error is None, f"{name} {command.run_id}: {answer.code}"
        return answer
