"""A server from its recovery to its end: which part begins when, and in which order they stop.

A failure of any part but a session ends the server; its next start finds what the disk holds. An
orderly end takes no new work, lets effects finish, ends runners and children, commits what waits,
and leaves one self-contained file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.kernel.order import Answer, Chore
from pi_workflows.server.audit_hook import guard
from pi_workflows.server.compose import Parts
from pi_workflows.server.housekeeping import watch_file
from pi_workflows.server.listener import Accepting
from pi_workflows.server.operations.interactions import judge_left
from pi_workflows.store.transaction import Transaction
from pi_workflows.store.volatile import release_server_epoch

# What a connection owes at the end is in its buffers already.
_FINISH_SECONDS: Final = 1.0


class Lifetime:
    """One server's life.

    Args:
        parts: The server, put together; its store is closed at the end.
        leaves_when_idle: Whether it ends when nobody has needed it for ten minutes.

    Attributes:
        has_slept: Whether it ended because its claim had expired while the machine slept: it has to
            begin again with a new epoch.
    """

    def __init__(self, parts: Parts, *, leaves_when_idle: bool) -> None:
        self._parts = parts
        self._services = parts.services
        self._leaves_when_idle = leaves_when_idle
        self._upkeep = trio.CancelScope()
        self._accepting = trio.CancelScope()
        self._resolving = trio.CancelScope()
        self._connecting = trio.CancelScope()
        self._written = trio.Event()
        self._scheduled = trio.Event()
        self._carried = trio.Event()
        self._resolved = trio.Event()
        self._disconnected = trio.Event()
        self.has_slept = False

    async def run(self, listen: Callable[[], Accepting], ready: Callable[[], None]) -> None:
        """Recover, serve until the server is told to stop, and stop in order.

        Args:
            listen: Binds the socket, when everything is recovered.
            ready: Called once when requests are answered.

        Raises:
            OutcomeUnknown: Nobody knows what the last COMMIT left; the store is closed as it is.
            Exception: A part failed (in a group); the store is closed as it is.
        """
        release = guard(self._services.store.path)
        try:
            async with trio.open_nursery() as nursery:
                await self._begin(nursery)
                nursery.start_soon(self._connect, listen())
                self._services.log.write("server.ready", epoch=self._services.epoch)
                ready()
                await self._services.stop.requested.wait()
                await self._end()
                release()
                self._services.store.close()
                self._connecting.cancel()
        except BaseException:
            release()
            self._services.store.crash()
            raise

    # --- the beginning ---------------------------------------------------------------------------

    async def _begin(self, nursery: trio.Nursery) -> None:
        """Start every part; claims and requests come after the recovery."""
        nursery.start_soon(_then, self._services.writer.run, self._written)
        await self._parts.recovery.run()
        self._services.turns.load()
        self._parts.ends.load()
        nursery.start_soon(self._keep_up)
        await nursery.start(self._resolve)
        await nursery.start(self._carry)
        nursery.start_soon(judge_left, self._services)
        nursery.start_soon(_then, self._parts.scheduler.run, self._scheduled)

    async def _keep_up(self) -> None:
        """Keep the server's claim and watch its file, and notice when nobody needs it."""
        with self._upkeep:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch_file, self._services.store)
                nursery.start_soon(self._services.turns.run)
                nursery.start_soon(self._parts.ends.run)
                if self._leaves_when_idle:
                    nursery.start_soon(self._leave_when_idle)
                nursery.start_soon(self._services.deadlines.run)
                await self._parts.timers.run()
                self.has_slept = True
                self._services.stop.request(grace_ms=0)

    async def _leave_when_idle(self) -> None:
        """Stop the server when it was idle for long enough."""
        await self._parts.idle.run()
        self._services.log.write("server.idle")
        self._services.stop.request(grace_ms=0)

    async def _resolve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Load workflows until that is over."""
        with self._resolving:
            await self._services.resolver.run(task_status=task_status)
        self._resolved.set()

    async def _carry(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Carry long commands until that is over."""
        await self._services.long_work.run(task_status=task_status)
        self._carried.set()

    async def _connect(self, listener: Accepting) -> None:
        """Serve connections until the end of the server; accept them until it begins to end."""
        with self._connecting:
            async with trio.open_nursery() as connections:
                connections.start_soon(self._services.hub.run)
                with self._accepting:
                    await self._parts.listener.run(listener, connections)
                await trio.sleep_forever()
        self._disconnected.set()

    # --- the end ---------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Take no new work, and let everything end that is under way."""
        services = self._services
        services.log.write("server.stopping", grace_ms=services.stop.grace_ms)
        self._parts.scheduler.close()
        await self._let_effects_finish()
        self._accepting.cancel()
        for run_id in await self._parts.supervisor.shut_down():
            services.log.write("effect.ambiguous", run=run_id)
        await self._scheduled.wait()
        self._resolving.cancel()
        services.long_work.close()
        await self._resolved.wait()
        await self._carried.wait()
        await self._finish_connections()
        self._upkeep.cancel()
        await services.writer.submit(Chore(self._release_epoch))
        services.writer.close()
        await self._written.wait()
        services.log.write("server.stopped", epoch=services.epoch)

    async def _finish_connections(self) -> None:
        """Let connections send what they owe; those that cannot in time end with their requests.

        Afterwards nothing reads the database. Connections that owe nothing stay open until the file
        is in order: their end tells the clients that it is.
        """
        with trio.move_on_after(_FINISH_SECONDS) as patience:
            await self._parts.listener.finish()
        if patience.cancelled_caught:
            self._connecting.cancel()
            await self._disconnected.wait()

    async def _let_effects_finish(self) -> None:
        """Wait for effects that are applying, until the grace ends or somebody hurries."""
        stop = self._services.stop
        changed = trio.Event()

        def observe(_answers: Sequence[Answer]) -> None:
            changed.set()

        self._services.writer.observe(observe)
        with trio.move_on_after(stop.grace_ms / MS_PER_SECOND) as patience:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_hurry, stop.hurried, patience)
                while any(held.effects for held in self._parts.supervisor.runs.values()):
                    changed = trio.Event()
                    await changed.wait()
                nursery.cancel_scope.cancel()

    def _release_epoch(self, tx: Transaction) -> None:
        """Give the server's claim back: the next one need not wonder."""
        release_server_epoch(tx, self._services.epoch)


async def _hurry(hurried: trio.Event, patience: trio.CancelScope) -> None:
    """End the waiting when somebody asks for it."""
    await hurried.wait()
    patience.cancel()


async def _then(run: Callable[[], Awaitable[None]], done: trio.Event) -> None:
    """Run a part, and say when it has ended."""
    await run()
    done.set()
