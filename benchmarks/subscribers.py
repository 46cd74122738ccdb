"""Subscribers, all in a process of their own: each with its connection and its watch of a run.

`python -m benchmarks.subscribers SOCKET COUNT RUN…`: the subscribers watch the runs in turn. It
says `ready` when each has its first view. Then it reads a line, the revision at which each run ends
as an array, and answers with what each subscriber got until then: `[revision, when]`, by the clock
that every process of the machine shares, in nanoseconds. It looks into the frames only at the end:
a hundred clients have a hundred processors, and these here have one.
"""

from __future__ import annotations

import math
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, cast

from benchmarks.service import Service
from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import SOCKET_READ_BYTES
from pi_workflows.protocol import envelope
from pi_workflows.protocol.envelope import Event, Request
from pi_workflows.protocol.frames import FrameReader
from pi_workflows.protocol.operations import Operation

_PATIENCE_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.1
_GREETING: Final = 3


class Frame(NamedTuple):
    """An event that a subscriber got.

    Attributes:
        revision: The presentation revision that it leads to.
        at_ns: When it was there.
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
    """One connection and what it got."""

    def __init__(self, socket_path: str, run_id: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(socket_path)
        self._buffer = b""
        self._lines: list[bytes] = []
        self._at_ns: list[int] = []
        watch = Request(
            request_id="watch",
            client_id=ids.random_id("client"),
            operation=Operation.VIEW_RUN_WATCH,
            idempotency_key=ids.random_id("key"),
            payload={"subscriptionId": "watched"},
            run_id=run_id,
        )
        self.socket.sendall(envelope.encode(watch))
        # Hello, the reply, and the first view.
        while len(self._lines) < _GREETING:
            self.receive()
        self._lines.clear()
        self._at_ns.clear()

    def receive(self) -> None:
        """Read once, and keep the frames that are complete with the time at which they are."""
        data = self.socket.recv(SOCKET_READ_BYTES)
        assert data, "the server closed a connection"
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        at_ns = time.monotonic_ns()
        self._lines += lines
        self._at_ns += [at_ns] * len(lines)

    def has(self, revision: int) -> bool:
        """Whether it got a revision."""
        return bool(self._lines) and _revision(self._lines[-1]) >= revision

    def frames(self) -> list[Json]:
        """Return the revision and time of each frame."""
        return [
            [_revision(line), at_ns] for line, at_ns in zip(self._lines, self._at_ns, strict=True)
        ]


def _revision(line: bytes) -> int:
    """Return the revision of a frame, which is a whole patch or view."""
    (frame,) = FrameReader().feed(line + b"\n")
    event = envelope.decode_from_server(frame)
    assert isinstance(event, Event), event
    assert event.revision is not None, event
    return event.revision


def _main(socket_path: str, count: int, run_ids: Sequence[str]) -> None:
    """Watch until the other process has asked, and all that it asks for is there."""
    watching = [_Subscriber(socket_path, run_ids[at % len(run_ids)]) for at in range(count)]
    selector = selectors.DefaultSelector()
    for each in watching:
        selector.register(each.socket, selectors.EVENT_READ, each)
    selector.register(sys.stdin, selectors.EVENT_READ)
    _say(b"ready")
    ends: list[int] = []
    until = math.inf
    while not ends or not all(each.has(ends[at % len(ends)]) for at, each in enumerate(watching)):
        assert time.monotonic() < until, "a subscriber waits for a patch"
        for key, _ in selector.select(_LOOK_SECONDS):
            receiving = cast("_Subscriber | None", key.data)
            if receiving is not None:
                receiving.receive()
            else:
                ends = cast("list[int]", canonical.decode(sys.stdin.buffer.readline()))
                until = time.monotonic() + _PATIENCE_SECONDS
                selector.unregister(sys.stdin)
    frames: list[Json] = [[*each.frames()] for each in watching]
    _say(canonical.encode(frames))


def _say(line: bytes) -> None:
    """Write a line at once."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
