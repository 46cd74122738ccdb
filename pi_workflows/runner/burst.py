"""Plain compute nodes that follow one another run in one thread, with no way back between them.

Handing a function to a thread and taking its result back costs more than most compute nodes do. So
the thread goes on by itself as long as the next node is of the same kind; trio keeps watch over the
deadline of the attempt under way and takes the run back when one passes.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import trio

from pi_workflows.authoring.nodes import ComputeNode
from pi_workflows.base.clock import Clock
from pi_workflows.runner.attempts import NEVER_NS, Attempt, Settlement, timed_out
from pi_workflows.runner.boundaries import Boundaries
from pi_workflows.runner.calls import Called, Calls, Job, Raised, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.plan import Enter, Step
from pi_workflows.runner.proposals import Proposals


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A plain function returned something that trio has to await."""

    attempt: Attempt
    awaitable: Awaitable[object]


@dataclass(frozen=True, slots=True)
class Overdue:
    """An attempt's time ended; it is not settled yet.

    Attributes:
        attempt: The attempt.
        is_stuck: Its function still runs.
    """

    attempt: Attempt
    is_stuck: bool


@dataclass(frozen=True, slots=True)
class Bursting:
    """What bursts need, the same for all of a run.

    Attributes:
        boundaries: Where attempts begin and settle.
        contexts: What functions are given.
        proposals: Whose room is waited for between two attempts.
        calls: Where the thread comes from.
        clock: What measures budgets.
        timeouts_ms: The nodes that may run here, with their budgets in active milliseconds.
        judge: Makes a settlement of how a node's function ended.
    """

    boundaries: Boundaries
    contexts: Contexts
    proposals: Proposals
    calls: Calls
    clock: Clock
    timeouts_ms: Mapping[str, int]
    judge: Callable[[Attempt, Called], Settlement]


Burst: TypeAlias = Step | Awaiting | Overdue


class Stay:
    """One stay in a thread.

    A lock decides who settles the attempt under way: the thread, or trio when its time has ended.
    """

    def __init__(self, bursting: Bursting, first: Attempt) -> None:
        """Prepare a stay.

        Args:
            bursting: What it needs.
            first: The attempt to begin with, already begun.
        """
        self._needs = bursting
        self._lock = threading.Lock()
        self._token = trio.lowlevel.current_trio_token()
        self._wake = trio.Event()
        self._current: Attempt | None = first
        self._watched_ns = NEVER_NS
        self._is_over = False
        self._end: Step | Awaiting | None = None

    async def run(self) -> Burst:
        """Run the attempt and those like it that follow.

        Returns:
            The first step that is none of them, or what else trio has to see to.
        """
        job = self._needs.calls.start(self._in_thread)
        while not self._is_over:
            with trio.move_on_after(self._needs.calls.seconds_until(self._watch())):
                await self._wake.wait()
            self._wake = trio.Event()
            overdue = self._take_overdue()
            if overdue is not None:
                return Overdue(overdue, is_stuck=not await job.ended_after(overdue.cancel))
        return await self._ended(job)

    async def _ended(self, job: Job) -> Burst:
        """Return what the thread came to."""
        await job.done.wait()
        if isinstance(job.ended, Raised):
            raise job.ended.error
        assert self._end is not None
        return self._end

    def _watch(self) -> int:
        """Return the deadline to wait for; the thread wakes trio when a nearer one comes up."""
        with self._lock:
            self._watched_ns = NEVER_NS if self._current is None else self._current.deadline_ns
            return self._watched_ns

    def _take_overdue(self) -> Attempt | None:
        """Take the attempt under way from the thread if its time has ended."""
        with self._lock:
            attempt = self._current
            if attempt is None or self._needs.clock.monotonic_ns() < attempt.deadline_ns:
                return None
            self._current = None
            return attempt

    def _in_thread(self) -> None:
        """Execute attempts; the body of the thread."""
        try:
            self._end = self._execute()
        finally:
            self._is_over = True
            self._token.run_sync_soon(self._wake_up)

    def _execute(self) -> Step | Awaiting | None:
        """Execute attempts until something else is due; None when trio has taken the last one."""
        needs = self._needs
        attempt = self._current
        while attempt is not None:
            called = self._call(attempt)
            if isinstance(called, Returned) and inspect.isawaitable(called.value):
                return Awaiting(attempt, called.value) if self._release(attempt) else None
            settlement = needs.judge(attempt, called)
            step = self._settle(attempt, settlement)
            if not isinstance(step, Enter) or step.node_path not in needs.timeouts_ms:
                return step
            if step.enters:
                # Making its input may take time that only trio can watch.
                return step
            needs.proposals.room_in_thread()
            attempt = self._begin(step)
        return None

    def _call(self, attempt: Attempt) -> Called:
        node = attempt.node
        assert isinstance(node, ComputeNode), attempt.node_path
        value: object = None
        with Caught() as caught:
            value = node.function(self._needs.contexts.of(attempt))
        return Returned(value) if caught.error is None else Raised(caught.error)

    def _release(self, attempt: Attempt) -> bool:
        """Give the attempt under way to trio; False when trio has taken it."""
        with self._lock:
            if self._current is not attempt:
                return False
            self._current = None
            return True

    def _settle(self, attempt: Attempt, settlement: Settlement) -> Step | None:
        """Settle the attempt under way; None when trio has taken it."""
        with self._lock:
            if self._current is not attempt:
                return None
            self._current = None
            if self._needs.clock.monotonic_ns() >= attempt.deadline_ns:
                settlement = timed_out(attempt.timeout_ms)
            return self._needs.boundaries.settle(attempt, settlement)

    def _begin(self, step: Enter) -> Attempt:
        timeout_ms = self._needs.timeouts_ms[step.node_path]
        with self._lock:
            attempt = self._needs.boundaries.begin(step, timeout_ms)
            self._current = attempt
            is_nearer = attempt.deadline_ns < self._watched_ns
        if is_nearer:
            self._token.run_sync_soon(self._wake_up)
        return attempt

    def _wake_up(self) -> None:
        self._wake.set()
