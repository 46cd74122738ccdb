"""The scripted server as a task of the test's own event loop, where the mock clock sees it wait."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import trio

from tests.client.peer import hello

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
