"""The client for asyncio: the one for trio, on the other event loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from pi_workflows.base.limits import CLIENT_CONNECT_MS
from pi_workflows.client.async_client import READ_BYTES, RESEND_SECONDS, AsyncClient
from pi_workflows.client.endpoint import Endpoint

_CONNECT_SECONDS: Final = CLIENT_CONNECT_MS / 1_000


class _Stream(NamedTuple):
    """A connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def open_client(group: asyncio.TaskGroup, endpoint: Endpoint) -> AsyncioClient:
    """Connect to the server; start it when it is missing and may be started.

    Args:
        group: Where the connection is served until it is closed; cancelling it closes the client.
        endpoint: Where the server is and who asks.

    Returns:
        The client, connected.

    Raises:
        Unavailable: `serverNotRunning`, `serverStartFailed` or `serverUnreachable`.
        ProtocolViolation: Something else listens there.
    """
    client = AsyncioClient(endpoint)
    stream = await client.reach(may_start=True)
    client.serve_in(group, stream)
    return client


class AsyncioClient(AsyncClient[_Stream]):
    """A connection to the server for any number of tasks. Made by `open_client`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Begin without a connection."""
        super().__init__(endpoint, asyncio.Event)
        self._task: asyncio.Task[None] | None = None

    def serve_in(self, group: asyncio.TaskGroup, stream: _Stream) -> None:
        """Serve the connection that `reach` made in a task of this group."""

        def end(_: asyncio.Task[None]) -> None:
            # A task that is cancelled before it begins runs nothing of itself.
            stream.writer.close()
            self._finish()

        self._task = group.create_task(self.serve(stream))
        self._task.add_done_callback(end)

    def close(self) -> None:
        """End the connection. Calls that wait raise Unavailable."""
        if self._task is not None:
            self._task.cancel()

    async def _exchange(self, stream: _Stream) -> None:
        """Read and write until the connection is lost, and close it."""
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._write(stream.writer))
                await self._read(stream)
                writing.cancel()
        finally:
            stream.writer.close()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        """Send what is owed as soon as it is there.

        End the connection when the server takes nothing.
        """
        while True:
            if outgoing := self._state.outgoing():
                writer.write(outgoing)
                try:
                    async with asyncio.timeout(RESEND_SECONDS):
                        await writer.drain()
                except OSError:  # which a TimeoutError is
                    writer.transport.abort()
                    return
            else:
                await self._owed()

    async def _dial(self) -> _Stream:
        """Connect once and wait for the hello. Raises OSError or ProtocolViolation."""
        async with asyncio.timeout(_CONNECT_SECONDS):
            opened = await asyncio.open_unix_connection(self._endpoint.socket_path)
        stream = _Stream(*opened)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._greet(stream)
        except BaseException:
            stream.writer.close()
            self._state.connected()
            raise
        return stream

    async def _receive(self, stream: _Stream) -> bytes:
        """Read once. Raises OSError when the connection is gone."""
        data = await stream.reader.read(READ_BYTES)
        if not data:
            raise ConnectionResetError
        return data

    def _now(self) -> float:
        """Return the loop's time in seconds."""
        return asyncio.get_running_loop().time()

    async def _sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        await asyncio.sleep(seconds)

    async def _changed_before(self, until: float) -> bool:
        """Wait for a change. Returns False when that time came first."""
        try:
            async with asyncio.timeout_at(None if until == math.inf else until):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _in_thread(self, starter: Callable[[], None]) -> None:
        """Call something that blocks."""
        await asyncio.to_thread(starter)
