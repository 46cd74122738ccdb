"""Subscribers, all in a process of their own: each with its connection and its watch of a run.

`python -m benchmarks.subscribers SOCKET COUNT RUN…`: the subscribers watch the runs in turn. It
says `ready` when each has its first view. Then it reads a line, the revision at which each run ends
as an array, and answers with what each subscriber got until then: `[revision, when]`, by the clock
that every process of the machine shares, in nanoseconds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, cast

import trio

from benchmarks.service import Service
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.version import package_version
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.client.trio_client import TrioClient, open_client

_PATIENCE_SECONDS: Final = 60


class Frame(NamedTuple):
    """An event that a subscriber got.

    Attributes:
        revision: The presentation revision that it leads to.
        at_ns: When it was decoded.
    """

    revision: int
    at_ns: int


class Subscribers:
    """The process, as the one that measures sees it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take over a process that is ready; use `subscribers`."""
        self._process = process

    def frames(self, last_revisions: Sequence[int]) -> list[list[Frame]]:
        """Wait until every subscriber has the last revision of its run.

        Args:
            last_revisions: Of each run.

        Returns:
            What each got after its first view, in order.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(canonical.encode(list(last_revisions)) + b"\n")
        self._process.stdin.flush()
        found = canonical.decode(self._process.stdout.readline())
        return [[Frame(*frame) for frame in each] for each in cast("list[list[list[int]]]", found)]


@contextmanager
def subscribers(service: Service, count: int, run_ids: Sequence[str]) -> Generator[Subscribers]:
    """Let clients watch runs for as long as the body runs.

    Args:
        service: The server.
        count: How many clients; none starts no process.
        run_ids: What they watch in turn.
    """
    command = [sys.executable, "-m", __name__, service.socket_path, str(count), *run_ids]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - ourselves
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", "no subscriber"
            yield Subscribers(process)
        finally:
            process.kill()


class _Subscriber:
    """One client and what it got."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._changed = trio.Event()
        self.frames: list[Json] = []
        self._revision = 0

    async def watch(self, client: TrioClient, *, task_status: trio.TaskStatus[None]) -> None:
        """Keep each event with its time."""
        subscription = await client.watch(self._run_id)
        await client.next_event(subscription)
        task_status.started()
        while True:
            event = await client.next_event(subscription)
            at_ns = time.monotonic_ns()
            assert event.revision is not None, event
            self._revision = event.revision
            self.frames.append([event.revision, at_ns])
            self._changed.set()

    async def reach(self, revision: int) -> None:
        """Wait until it has a revision."""
        while self._revision < revision:
            self._changed = trio.Event()
            await self._changed.wait()


async def _main(socket_path: str, count: int, run_ids: Sequence[str]) -> None:
    """Watch until the other process has asked."""
    async with trio.open_nursery() as nursery:
        watching = [_Subscriber(run_ids[number % len(run_ids)]) for number in range(count)]
        for each in watching:
            client = await open_client(nursery, Endpoint(socket_path, package_version()))
            await nursery.start(each.watch, client)
        _say(b"ready")
        asked = await trio.to_thread.run_sync(sys.stdin.buffer.readline)
        ends = cast("list[int]", canonical.decode(asked))
        with trio.fail_after(_PATIENCE_SECONDS):
            for number, each in enumerate(watching):
                await each.reach(ends[number % len(ends)])
        frames: list[Json] = [[*each.frames] for each in watching]
        _say(canonical.encode(frames))
        nursery.cancel_scope.cancel()


def _say(line: bytes) -> None:
    """Write a line at once."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], int(sys.argv[2]), sys.argv[3:])
