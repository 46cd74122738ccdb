"""One task per runner: launched, listened to, ended with its tree, and what that means for its run.

What a commit decides comes first and the process follows: a pause or a cancel is durable before its
runner is told. Everything else is the other way around: the tree is gone before its loss, its fault
or its overdue node is stored, so that nothing of it can act any more when the run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import trio

from pi_workflows.base import ids
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import Outcome, Refused, Unavailable
from pi_workflows.base.limits import NODE_TIMEOUT_MS_MAX, RUNNER_SHUTDOWN_MS, RUNNER_STUCK_MS
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS
from pi_workflows.domain.attempt.boundary import FinishAttempt
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.effect.application import SettleEffect
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import SOURCE_CHANGED, FailLaunch, LoseRunner
from pi_workflows.domain.run.ending import FailRun
from pi_workflows.domain.run.state import run_state
from pi_workflows.kernel.order import Answer, Chore, Order
from pi_workflows.server import workers
from pi_workflows.server.channel import Channel
from pi_workflows.server.claims import HeldRun, StopReason
from pi_workflows.server.endings import Ending, Faulty, Forfeited, Left, Lost, Stuck, Unlaunched
from pi_workflows.server.launch import Launched, Process, Started, Starter, launched
from pi_workflows.server.log import ServerLog
from pi_workflows.server.output import Tail
from pi_workflows.server.registry import Exit
from pi_workflows.server.workers import EndedWorker
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.store.volatile import WorkerEnd

# A runner that has ended while its channel stays open left a process that holds it.
_LEFT_OPEN_SECONDS: Final = 2.0
# What a tree wrote before it was ended is in the pipe already.
_REST_OF_OUTPUT_SECONDS: Final = 0.5
_STORE_AGAIN_SECONDS: Final = 1.0
_NEVER_NS: Final = 2**63 - 1


@dataclass(slots=True)
class _Runner:
    """A run that is worked on.

    Attributes:
        held: The run and its claim.
        process: Its process, once there is one.
        channel: Its channel, once there is one.
    """

    held: HeldRun
    process: Process | None = None
    channel: Channel | None = None


class Supervisor:
    """Every runner of this server.

    Args:
        writer: Where everything durable goes.
        store: What launches are read from.
        starter: Starts processes.
        clock: Wall and monotonic time.
        log: Told of every end that nobody wanted.
        host_id: This server, as the owner of claims.
        epoch: Its epoch.
        changed: Called, without blocking, when a process fact of a run changed.
    """

    def __init__(
        self,
        *,
        writer: Writer,
        store: Store,
        starter: Starter,
        clock: Clock,
        log: ServerLog,
        host_id: str,
        epoch: int,
        changed: Callable[[str], None],
    ) -> None:
        self._writer = writer
        self._store = store
        self._starter = starter
        self._clock = clock
        self._log = log
        self._actor = Actor("host", host_id)
        self._epoch = epoch
        self._changed = changed
        self._runners: dict[str, _Runner] = {}
        self._is_shutting_down = False
        self._idle = trio.Event()

    @property
    def runs(self) -> Mapping[str, HeldRun]:
        """The runs that are worked on, until nothing of their runners is left."""
        return {run_id: each.held for run_id, each in self._runners.items()}

    @property
    def active_digests(self) -> frozenset[str]:
        """Values under way between runners and the server, as hex digests."""
        return frozenset(
            digest
            for each in self._runners.values()
            if each.channel is not None
            for digest in each.channel.active_digests
        )

    def live_runs(self) -> frozenset[str]:
        """Return the runs whose exact process lives under an unexpired claim."""
        now_ms = self._clock.now_ms()
        return frozenset(
            run_id
            for run_id, each in self._runners.items()
            if each.process is not None
            and not each.held.is_released
            and each.held.expires_at_ms > now_ms
            and each.process.is_alive
        )

    def observe(self, answers: Sequence[Answer]) -> None:
        """Take in what was committed about the runs here. Called before any reply leaves."""
        if not self._runners:
            return
        now_ns = self._clock.monotonic_ns()
        for answer in answers:
            for event in answer.events:
                view = event.fact.view
                found = self._runners.get(view.run_id) if view is not None else None
                if found is not None:
                    found.held.note(event, now_ns)

    async def shut_down(self) -> tuple[str, ...]:
        """Let every runner finish its proposal and leave, within five seconds; then end its tree.

        Nothing is stored about their runs: whoever takes over does that.

        Returns:
            The runs whose manual effect is thereby left uncertain.
        """
        uncertain = self._uncertain()
        self._is_shutting_down = True
        for each in self._runners.values():
            each.held.changed()
        while self._runners:
            self._idle = trio.Event()
            await self._idle.wait()
        return uncertain

    def begin(self, nursery: trio.Nursery, held: HeldRun, ended: Callable[[], None]) -> None:
        """Work on a claimed run until nothing of its runner is left and its end is stored.

        Args:
            nursery: Where the runner's task runs.
            held: The run.
            ended: Called, without blocking, when all is done.
        """
        runner = self._runners[held.run_id] = _Runner(held)
        nursery.start_soon(self._supervise, runner, ended)

    async def _supervise(self, runner: _Runner, ended: Callable[[], None]) -> None:
        """See one runner through."""
        run_id = runner.held.run_id
        try:
            await self._conclude(runner.held, await self._work(runner))
        finally:
            del self._runners[run_id]
            self._idle.set()
            self._changed(run_id)
            ended()

    # --- a runner's life -------------------------------------------------------------------------

    async def _work(self, runner: _Runner) -> Ending:
        """Launch a runner and see it through to its end."""
        held = runner.held
        worker_epoch = ids.random_id("worker")
        try:
            with self._store.snapshot() as read:
                launch = launched(read, held, worker_epoch)
        except Refused as refusal:
            return Unlaunched(Failure(refusal.reason_code, refusal.message))
        held.step_total = launch.step_total
        try:
            row = workers.starting(held, launch, self._epoch, self._clock.now_ms())
            await self._writer.submit(row)
        except Unavailable as error:
            return Lost(f"the launch could not be stored: {error.reason_code}", is_counted=False)
        try:
            started = self._starter(launch)
        except OSError as error:
            await self._keep(EndedWorker(worker_epoch, "crashed", Exit(), b""))
            return _not_started(launch, error)
        runner.process = started.process
        self._changed(held.run_id)
        tail = Tail()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tail.drain, started.output)
            try:
                ending = await self._talk(runner, started, launch)
            finally:
                left = await started.process.kill_tree()
                await trio.aclose_forcefully(started.stream)
            with trio.move_on_after(_REST_OF_OUTPUT_SECONDS):
                await tail.ended.wait()
            nursery.cancel_scope.cancel()
        await trio.aclose_forcefully(started.output)
        if left:
            self._log.write("runner.left", run=held.run_id, processes=len(left))
        return await self._record(worker_epoch, held, ending, started.process, tail.content)

    async def _talk(self, runner: _Runner, started: Started, launch: Launched) -> Ending:
        """Serve a runner's channel while its deadlines and its process are watched."""
        held, process = runner.held, started.process
        channel = runner.channel = Channel(
            started.stream,
            held,
            launch.worker_epoch,
            shells=process,
            writer=self._writer,
            read_blob=self._read_blob,
            clock=self._clock,
            log=self._log,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._note_spawned, launch.worker_epoch, process)
            nursery.start_soon(self._guard, held, channel)
            nursery.start_soon(_watch_exit, process, channel)
            ending = await channel.serve(launch)
            nursery.cancel_scope.cancel()
        if isinstance(ending, Left | Lost | Forfeited):
            # A runner that closed its channel is about to exit by itself.
            with trio.move_on_after(_LEFT_OPEN_SECONDS):
                await process.wait()
        return ending

    async def _guard(self, held: HeldRun, channel: Channel) -> None:
        """End a runner that must leave, or whose node is overdue."""
        is_told = False
        while True:
            news = held.news
            if self._is_shutting_down:
                await _let_leave(channel, "shutdown")
                channel.end(Lost("the server stopped", is_counted=False))
                return
            if held.is_released:
                await _let_leave(channel, None if is_told else held.stop_reason)
                channel.end(Left())
                return
            if held.expires_at_ms <= self._clock.now_ms():
                channel.end(Forfeited())
                return
            now_ns = self._clock.monotonic_ns()
            if held.is_leaving and not is_told:
                is_told = True
                await channel.stop("pause", _leave_ms(held, now_ns))
                continue
            overdue_ns = _overdue_ns(held)
            if overdue_ns <= now_ns and held.active is not None:
                active = held.active
                elapsed_ns = active.elapsed_ns(now_ns)
                channel.end(Stuck(active.attempt_id, elapsed_ns, active.timeout_ms))
                return
            with trio.move_on_after((overdue_ns - now_ns) / NS_PER_MS / MS_PER_SECOND):
                await news.wait()

    async def _note_spawned(self, worker_epoch: str, process: Process) -> None:
        """Keep in the runner's row which process it became."""
        try:
            await self._writer.submit(workers.spawned(worker_epoch, process))
        except Unavailable as error:
            self._log.limited("runner.unrecorded", code=error.reason_code)

    # --- what becomes of the run -----------------------------------------------------------------

    async def _record(
        self, worker_epoch: str, held: HeldRun, ending: Ending, process: Process, output: bytes
    ) -> Ending:
        """Keep how a process ended, and say more of a loss than that its channel closed."""
        if process.is_alive:
            # The kernel holds it. It stays in the registry, for whoever takes over.
            return ending
        ended = process.exit()
        if isinstance(ending, Lost) and ending.is_counted:
            ending = Lost(f"{ending.detail} ({ended})")
        if not isinstance(ending, Left | Forfeited) and not self._is_shutting_down:
            self._log.write("runner.ended", run=held.run_id, how=str(ending), exit=str(ended))
        status: WorkerEnd = _STATUS[type(ending)]
        if isinstance(ending, Left) and held.stop_reason is not None:
            status = "cancelled"
        await self._keep(EndedWorker(worker_epoch, status, ended, output))
        return ending

    async def _keep(self, worker: EndedWorker) -> None:
        """Keep how a process ended; the run can have no other runner before."""
        await self._insist(workers.ended(worker, self._clock.now_ms()))

    async def _conclude(self, held: HeldRun, ending: Ending) -> None:
        """Store what the end of a runner means for its run, when no commit has said it already."""
        if held.is_released or self._is_shutting_down:
            return
        detail, is_counted = "the claim was lost", False
        commands: tuple[Command, ...] = ()
        match ending:
            case Unlaunched(failure):
                commands = (FailLaunch(held.run_id, failure),)
            case Faulty(failure):
                commands = (FailRun(held.run_id, failure),)
            case Stuck():
                detail = "the runner overran its node's budget"
                commands = self._overdue(held, ending, detail)
            case Lost():
                detail, is_counted = ending.detail, ending.is_counted
            case _:
                pass
        if commands and await self._store_end(held, *commands):
            return
        lost = LoseRunner(held.run_id, held.step_total, counted=is_counted, detail=detail)
        await self._store_end(held, lost)

    def _overdue(self, held: HeldRun, stuck: Stuck, detail: str) -> tuple[Command, ...]:
        """Return what ends an overdue attempt; none when its manual effect makes that unknown."""
        seconds = stuck.timeout_ms / MS_PER_SECOND
        failure = Failure("timedOut", f"not done within {seconds:g} s of active time")
        commands: tuple[Command, ...] = (
            FinishAttempt(
                held.run_id,
                attempt_id=stuck.attempt_id,
                outcome="timed_out",
                failure=failure,
                elapsed_ns=stuck.elapsed_ns,
            ),
            LoseRunner(held.run_id, held.step_total, counted=False, detail=detail),
        )
        with self._store.snapshot() as read:
            effect = effects.applying(read, run_state(read, held.run_id).resource_id)
            if effect is None:
                return commands
            if effects.is_manual(read, effect):
                return ()
            tried = SettleEffect(
                held.run_id, effect.effect_id, effect.attempt_count, outcome="uncertain"
            )
            return (tried, *commands)

    async def _store_end(self, held: HeldRun, *commands: Command) -> bool:
        """Store the end of a runner; say whether it was accepted."""
        # No claim is shown: it may have expired, and this task alone works on the run.
        order = Order(
            name="run.runner_ended",
            commands=commands,
            actor=self._actor,
            command_id=ids.random_id("command"),
            run_id=held.run_id,
        )
        answer = await self._insist(order)
        if answer is None or answer.outcome in (Outcome.ACCEPTED, Outcome.ADOPTED):
            return True
        self._log.write("runner.unconcluded", run=held.run_id, code=answer.code)
        return False

    async def _insist(self, work: Order | Chore) -> Answer | None:
        """Submit until the store takes it; None when the server stops first."""
        while True:
            try:
                return await self._writer.submit(work)
            except Unavailable as error:
                if self._is_shutting_down or error.reason_code == "stopping":
                    return None
                self._log.limited("writer.unavailable", code=error.reason_code)
            await trio.sleep(_STORE_AGAIN_SECONDS)

    def _read_blob(self, digest: bytes) -> bytes:
        """Return a stored value."""
        with self._store.snapshot() as read:
            return read.blob(digest)

    def _uncertain(self) -> tuple[str, ...]:
        """Return the runs here whose manual effect is under way."""
        with self._store.snapshot() as read:
            return tuple(
                run_id
                for run_id, each in self._runners.items()
                if each.held.effects
                and (found := effects.applying(read, run_state(read, run_id).resource_id))
                and effects.is_manual(read, found)
            )


def _not_started(launch: Launched, error: OSError) -> Ending:
    """Say why a process could not be started: a project that is gone, a person has to put back."""
    if not os.path.isdir(launch.project_path):  # noqa: PTH112 - one look, after the fact
        message = f"The project directory {launch.project_path} is gone."
        return Unlaunched(Failure(SOURCE_CHANGED, message))
    return Lost(f"the runner could not be started: {error.strerror}")


async def _watch_exit(process: Process, channel: Channel) -> None:
    """End a conversation whose runner has ended while something else holds its channel open."""
    await process.wait()
    await trio.sleep(_LEFT_OPEN_SECONDS)
    channel.end(Lost("the runner ended and left its channel open"))


async def _let_leave(channel: Channel, reason: StopReason | Literal["shutdown"] | None) -> None:
    """Give a runner five seconds to close its channel, telling it why unless it knows."""
    with trio.move_on_after(RUNNER_SHUTDOWN_MS / MS_PER_SECOND):
        if reason is not None:
            await channel.stop(reason, RUNNER_SHUTDOWN_MS)
        await trio.sleep_forever()


def _overdue_ns(held: HeldRun) -> int:
    """Return the monotonic reading at which the open attempt's runner is ended."""
    active = held.active
    if active is None or not active.timeout_ms:
        return _NEVER_NS
    return active.started_ns + (active.timeout_ms + RUNNER_STUCK_MS) * NS_PER_MS


def _leave_ms(held: HeldRun, now_ns: int) -> int:
    """Return how long the effect that a pause waits for may still take."""
    left_ms = held.active.left_ms(now_ns) if held.active is not None else None
    return (NODE_TIMEOUT_MS_MAX if left_ms is None else left_ms) + RUNNER_STUCK_MS


_STATUS: Final[Mapping[type[Ending], WorkerEnd]] = {
    Left: "exited",
    Lost: "crashed",
    Forfeited: "claimLost",
    Unlaunched: "exited",
    Faulty: "crashed",
    Stuck: "timedOut",
}
