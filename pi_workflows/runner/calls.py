"""Calling an author's functions within their time: async ones under trio, others in a thread."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, cast

import trio

from pi_workflows.authoring.context import CancelSignal
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import TERMINATE_GRACE_MS
from pi_workflows.runner.attempts import NEVER_NS
from pi_workflows.runner.caught import Caught

_NS_PER_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Returned:
    """The function ended by itself."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The function raised."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Expired:
    """The function's time ended first.

    Attributes:
        is_stuck: It ran on for 2 s after it was told; nothing can end it but the end of this
            process.
    """

    is_stuck: bool


Called: TypeAlias = Returned | Raised | Expired


class Job:
    """One call that runs beside whoever waits for it, so that nothing in it can hold the runner.

    Attributes:
        done: Set when it has ended.
        ended: How, once it has.
    """

    def __init__(self, function: Callable[[], object], *, is_async: bool) -> None:
        """Prepare a call.

        Args:
            function: What to call.
            is_async: Whether its result is awaited under trio; otherwise it is called in a thread.
        """
        self.done = trio.Event()
        self.ended: Returned | Raised | None = None
        self._function = function
        self._is_async = is_async
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Run the call, in a task of its own; when that is cancelled, a thread is left alone."""
        if self._is_async:
            with self._scope:
                await self._call_under_trio()
        else:
            await trio.to_thread.run_sync(self._call, abandon_on_cancel=True)
        if self.ended is None:
            self.ended = Raised(TimeoutError())
        self.done.set()

    async def ended_after(self, cancel: CancelSignal) -> bool:
        """Ask the call to end and say whether it did, within two seconds."""
        cancel.request()
        self._scope.cancel()
        with trio.move_on_after(TERMINATE_GRACE_MS / 1_000):
            await self.done.wait()
        return self.done.is_set()

    def _call(self) -> None:
        value: object = None
        with Caught() as caught:
            value = self._function()
        self.ended = Returned(value) if caught.error is None else Raised(caught.error)

    async def _call_under_trio(self) -> None:
        value: object = None
        with Caught() as caught:
            value = await cast("Awaitable[object]", self._function())
        self.ended = Returned(value) if caught.error is None else Raised(caught.error)


class Calls:
    """Makes calls in the tasks of one nursery."""

    def __init__(self, nursery: trio.Nursery, clock: Clock) -> None:
        """Make calls.

        Args:
            nursery: Where their tasks run; it ends with the runner.
            clock: What deadlines are readings of.
        """
        self._nursery = nursery
        self._clock = clock

    def start(self, function: Callable[[], object], *, is_async: bool = False) -> Job:
        """Start a call without waiting for it."""
        job = Job(function, is_async=is_async)
        self._nursery.start_soon(job.run)
        return job

    async def call(
        self,
        function: Callable[..., object],
        *arguments: object,
        deadline_ns: int,
        cancel: CancelSignal,
    ) -> Called:
        """Call a function of the author's.

        Args:
            function: Async, or plain and then called in a thread. What a plain one returns may be
                awaitable.
            arguments: What it is given.
            deadline_ns: The monotonic reading at which its time ends.
            cancel: What is set when its time has ended.

        Returns:
            How it ended. A result that comes after the deadline does not count.
        """
        job = self.start(partial(function, *arguments), is_async=is_async(function))
        called = await self._within(job, deadline_ns, cancel)
        if isinstance(called, Returned) and inspect.isawaitable(called.value):
            return await self.finish(called.value, deadline_ns=deadline_ns, cancel=cancel)
        return called

    async def finish(
        self, awaitable: Awaitable[object], *, deadline_ns: int, cancel: CancelSignal
    ) -> Called:
        """Await what a plain function returned, as `call` does with an async one."""
        job = self.start(lambda: awaitable, is_async=True)
        return await self._within(job, deadline_ns, cancel)

    async def _within(self, job: Job, deadline_ns: int, cancel: CancelSignal) -> Called:
        """Wait for a job until its deadline."""
        with trio.move_on_after(self.seconds_until(deadline_ns)):
            await job.done.wait()
        if job.done.is_set() and self._clock.monotonic_ns() < deadline_ns:
            assert job.ended is not None
            return job.ended
        return Expired(is_stuck=not await job.ended_after(cancel))

    def seconds_until(self, deadline_ns: int) -> float:
        """Return the seconds until a monotonic reading, at least 0; infinite for `NEVER_NS`."""
        if deadline_ns == NEVER_NS:
            return float("inf")
        return max(0, deadline_ns - self._clock.monotonic_ns()) / _NS_PER_SECOND


def is_async(function: Callable[..., object]) -> bool:
    """Say whether calling a function, or an object with `__call__`, gives a coroutine."""
    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004 - the method
