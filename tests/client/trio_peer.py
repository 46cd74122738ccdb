"""The scripted server as a task of the test's own event loop, where the mock clock sees it wait."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
import trio.testing

from pi_workflows.base.errors import Outcome
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.client.trio_client import TrioClient
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from tests.client.peer import VERSION, hello

_READ_BYTES = 65_536


class TrioConnection:
    """One client's connection, as the server sees it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def send(self, data: bytes) -> None:
        """Send frames, or whatever else."""
        await self._stream.send_all(data)

    async def request(self) -> dict[str, Any]:
        """Return the next request. Fails when the client closes instead."""
        while b"\n" not in self._buffer:
            data = await self._stream.receive_some(_READ_BYTES)
            assert data, "the client closed"
            self._buffer += data
        content, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        request: dict[str, Any] = json.loads(content)
        return request

    async def until_closed(self) -> bytes:
        """Wait until the client closes; return what it sent before."""
        while data := await self._stream.receive_some(_READ_BYTES):
            self._buffer += data
        return bytes(self._buffer)

    async def close(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


class TrioListener:
    """The server's socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket = trio.socket.from_stdlib_socket(self._bound)

    def listen(self) -> None:
        """Begin to listen.

        Without trio, which would bind in a thread: the mock clock does not wait for those.
        """
        self._bound.bind(str(self.path))
        self._bound.listen()

    async def accept(self, *, greeting: bytes | None = None) -> TrioConnection:
        """Accept a client and greet it."""
        accepted, _ = await self._socket.accept()
        connection = TrioConnection(trio.SocketStream(accepted))
        await connection.send(hello() if greeting is None else greeting)
        return connection

    def close(self) -> None:
        """Stop listening and remove the socket, as a server does that ends."""
        self.path.unlink(missing_ok=True)
        self._socket.close()


TrioTest = Callable[[TrioListener], Awaitable[None]]


def run_test(test: TrioTest, *, listens: bool = True) -> None:
    """Run a test with its server in an event loop whose clock jumps when everybody waits."""

    async def run(path: Path) -> None:
        listener = TrioListener(path)
        try:
            if listens:
                listener.listen()
            await test(listener)
        finally:
            listener.close()

    with tempfile.TemporaryDirectory() as directory:
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(run, Path(directory) / "host.sock", clock=clock)


def endpoint_of(path: Path, starter: Callable[[], None] | None = None) -> Endpoint:
    """Return where the client connects."""
    return Endpoint(str(path), VERSION, client_id="client-1", random=lambda: 1.0, starter=starter)


async def pause(client: TrioClient) -> Outcome:
    """Ask to pause a run and return the outcome."""
    return (await client.request(Operation.RUN_PAUSE, {}, run_id="build-1")).outcome


def reason_of(event: Event) -> object:
    """Return why a subscription is unavailable."""
    assert event.event is EventKind.UNAVAILABLE
    assert isinstance(event.payload, dict)
    return event.payload["reasonCode"]
