"""The writer: one task takes everything that waits, commits it as one group, and only then answers.

The decision on group commit. Work that was taken is never abandoned: a caller that is cancelled
while it waits leaves its receipt all the same, and the client that asks again adopts it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import trio

from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import Unavailable, WorkflowsError
from pi_workflows.base.limits import (
    GROUP_BYTES_MAX,
    GROUP_COMMANDS_MAX,
    GROUP_WORK_MS,
    WAL_CHECKPOINT_BYTES,
    WAL_IDLE_MS,
    WAL_REPORT_BYTES,
    WRITER_QUEUE_MAX,
)
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS
from pi_workflows.kernel.group import Kernel, Result
from pi_workflows.kernel.order import Answer, Work
from pi_workflows.server.housekeeping import require_in_place
from pi_workflows.server.latency import CommitLatency
from pi_workflows.server.log import ServerLog
from pi_workflows.store.database import Store

T = TypeVar("T")
Observer: TypeAlias = Callable[[Sequence[Answer]], None]


@dataclass(slots=True, eq=False)
class Handed:
    """One piece of work that the writer has; `answer` waits for what becomes of it."""

    work: Work
    done: trio.Event = field(default_factory=trio.Event)
    result: Result | None = None

    async def answer(self) -> Answer:
        """Wait until it is durable. Returns and raises as `Writer.submit`."""
        await self.done.wait()
        assert self.result is not None, "answered without an answer"
        if isinstance(self.result, Answer):
            return self.result
        raise self.result


class Writer:
    """The only caller of the kernel.

    Args:
        kernel: Decides and commits a group.
        store: The database that the kernel writes.
        clock: The one `now` of a group, and how long it took.
        log: Told when the write-ahead log does not shrink.
    """

    def __init__(self, kernel: Kernel, store: Store, clock: Clock, log: ServerLog) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._log = log
        self._queue: deque[Handed] = deque()
        self._between: deque[Callable[[], None]] = deque()
        self._wake = trio.Event()
        self._observers: list[Observer] = []
        self._is_closing = False
        self._is_unsaved = False
        self.latency = CommitLatency()

    def observe(self, observer: Observer) -> None:
        """Call a function with every group's answers, after COMMIT and before any reply leaves.

        Args:
            observer: Must neither block nor raise.
        """
        self._observers.append(observer)

    async def submit(self, work: Work) -> Answer:
        """Hand over one piece of work and wait until it is durable.

        Args:
            work: An order or a chore.

        Returns:
            What became of it, a refusal by the domain included.

        Raises:
            Unavailable: `stopping`, `writerBusy`, or the store could not take it.
            Refused: What a chore refused. Of either nothing remains.
            trio.Cancelled: The caller no longer waits; the work is done all the same.
        """
        return await self.hand_over(work).answer()

    def hand_over(self, work: Work) -> Handed:
        """Hand over one piece of work without waiting; what is handed over in order is done so.

        Args:
            work: An order or a chore.

        Returns:
            The work, to wait for.

        Raises:
            Unavailable: `stopping` or `writerBusy`; nothing of it remains.
        """
        if self._is_closing:
            raise stopping()
        if len(self._queue) >= WRITER_QUEUE_MAX:
            raise Unavailable(
                f"{WRITER_QUEUE_MAX} commands wait already.",
                code="writerBusy",
                hint="Try again in a moment.",
            )
        handed = Handed(work)
        self._queue.append(handed)
        self._wake.set()
        return handed

    async def between(self, action: Callable[[], T]) -> T:
        """Run something that needs the writer's connection between two groups.

        Args:
            action: Synchronous; nothing else is written while it runs. It runs even if the caller
                is cancelled.

        Returns:
            What it returned.

        Raises:
            WorkflowsError: What it raised; anything else ends the writer.
            Unavailable: `stopping`.
        """
        if self._is_closing:
            raise stopping()
        outcome: list[T | WorkflowsError] = []
        done = trio.Event()

        def run() -> None:
            try:
                outcome.append(action())
            except WorkflowsError as error:
                outcome.append(error)
            done.set()

        self._between.append(run)
        self._wake.set()
        await done.wait()
        result = outcome[0]
        if isinstance(result, WorkflowsError):
            raise result
        return result

    def close(self) -> None:
        """Take no more work; `run` ends when what waits is done."""
        self._is_closing = True
        self._wake.set()

    async def run(self) -> None:
        """Commit what waits, in order, until `close` was called and nothing waits.

        Raises:
            OutcomeUnknown: COMMIT failed and may be durable. Nobody is answered: close everything,
                exit.
            Corrupt: `stateMoved`: the file is no longer the one that was opened. Nobody is
                answered.
            AssertionError: Our bug. Nobody is answered.
        """
        while True:
            if not self._queue and not self._between:
                if self._is_closing:
                    return
                await self._rest()
                continue
            if self._between:
                self._between.popleft()()
            if self._queue:
                self._commit()
            # Replies leave and new work arrives before the next group begins.
            await trio.lowlevel.checkpoint()
            if self._store.wal_bytes() > WAL_CHECKPOINT_BYTES:
                self._checkpoint()

    async def _rest(self) -> None:
        """Wait for work; after two seconds without any, move the log into the database."""
        self._wake = trio.Event()
        if self._is_unsaved:
            with trio.move_on_after(WAL_IDLE_MS / MS_PER_SECOND):
                await self._wake.wait()
                return
            self._checkpoint()
        await self._wake.wait()

    def _checkpoint(self) -> None:
        """Checkpoint between groups, and report a log that a reader keeps from shrinking."""
        self._is_unsaved = False
        try:
            self._store.checkpoint()
        except Unavailable as error:
            # The log keeps everything; a disk that has room again takes the next one.
            self._log.limited("checkpoint.failed", code=error.reason_code)
            return
        wal_bytes = self._store.wal_bytes()
        if wal_bytes > WAL_REPORT_BYTES:
            self._log.limited("wal.large", bytes=wal_bytes)

    def _commit(self) -> None:
        """Commit one group, tell the observers, then let the callers go on."""
        group = self._take()
        began_ns = self._clock.monotonic_ns()
        deadline_ns = began_ns + GROUP_WORK_MS * NS_PER_MS
        results = self._kernel.commit(
            [waiting.work for waiting in group],
            self._clock.now_ms(),
            is_over=lambda: self._clock.monotonic_ns() >= deadline_ns,
        )
        self.latency.add(self._clock.monotonic_ns() - began_ns, len(results))
        self._is_unsaved = True
        require_in_place(self._store)
        # What the group's time did not reach goes first into the next one.
        self._queue.extendleft(reversed(group[len(results) :]))
        answers = [result for result in results if isinstance(result, Answer)]
        for observer in self._observers:
            observer(answers)
        for waiting, result in zip(group, results, strict=False):
            waiting.result = result
            waiting.done.set()

    def _take(self) -> list[Handed]:
        """Take what fits one group from the front of the queue, at least one piece."""
        group: list[Handed] = []
        size_bytes = 0
        while self._queue and len(group) < GROUP_COMMANDS_MAX:
            size_bytes += self._queue[0].work.size_bytes
            if group and size_bytes > GROUP_BYTES_MAX:
                break
            group.append(self._queue.popleft())
        return group


def stopping() -> Unavailable:
    """Return the answer of a server that takes no more work."""
    return Unavailable(
        "The server is stopping.", code="stopping", hint="Ask again when it has started again."
    )
