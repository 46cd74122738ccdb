"""The client for trio.

Requests and news side by side over one connection that comes back when it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import trio

from pi_workflows.base.limits import CLIENT_CONNECT_MS
from pi_workflows.client.async_client import READ_BYTES, RESEND_SECONDS, AsyncClient
from pi_workflows.client.endpoint import Endpoint

_CONNECT_SECONDS: Final = CLIENT_CONNECT_MS / 1_000


async def open_client(nursery: trio.Nursery, endpoint: Endpoint) -> TrioClient:
    """Connect to the server; start it when it is missing and may be started.

    Args:
        nursery: Where the connection is served until it is closed; cancelling it closes the client.
        endpoint: Where the server is and who asks.

    Returns:
        The client, connected.

    Raises:
        Unavailable: `serverNotRunning`, `serverStartFailed` or `serverUnreachable`.
        ProtocolViolation: Something else listens there.
    """
    client = TrioClient(endpoint)
    stream = await client.reach(may_start=True)
    nursery.start_soon(client.serve, stream)
    return client


class TrioClient(AsyncClient[trio.SocketStream]):
    """A connection to the server for any number of tasks. Made by `open_client`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Begin without a connection."""
        super().__init__(endpoint, trio.Event)
        self._scope = trio.CancelScope()

    def close(self) -> None:
        """End the connection. Calls that wait raise Unavailable."""
        self._scope.cancel()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve this connection and each one after it, until the server stays away or `close`.

        Args:
            stream: The connection that `reach` made; closed in the end.
        """
        with self._scope:
            await super().serve(stream)

    async def _exchange(self, stream: trio.SocketStream) -> None:
        """Read and write until the connection is lost, and close it."""
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(self._write, stream, nursery.cancel_scope)
            await self._read(stream)
            nursery.cancel_scope.cancel()

    async def _write(self, stream: trio.SocketStream, connection: trio.CancelScope) -> None:
        """Send what is owed as soon as it is there.

        End the connection when the server takes nothing.
        """
        while True:
            if outgoing := self._state.outgoing():
                with trio.move_on_after(RESEND_SECONDS) as scope:
                    try:
                        await stream.send_all(outgoing)
                    except trio.BrokenResourceError:
                        scope.cancel()
                if scope.cancel_called:
                    connection.cancel()
            else:
                await self._owed()

    async def _dial(self) -> trio.SocketStream:
        """Connect once and wait for the hello. Raises OSError or ProtocolViolation."""
        connection = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        stream: trio.SocketStream | None = None
        try:
            with _in_time():
                await connection.connect(self._endpoint.socket_path)
            stream = trio.SocketStream(connection)
            with _in_time():
                await self._greet(stream)
        except BaseException:
            connection.close()
            self._state.connected()
            raise
        return stream

    async def _receive(self, stream: trio.SocketStream) -> bytes:
        """Read once. Raises OSError when the connection is gone."""
        try:
            data = await stream.receive_some(READ_BYTES)
        except trio.BrokenResourceError as error:
            raise ConnectionResetError from error
        if not data:
            raise ConnectionResetError
        return bytes(data)

    def _now(self) -> float:
        """Return the loop's time in seconds."""
        return trio.current_time()

    async def _sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        await trio.sleep(seconds)

    async def _changed_before(self, until: float) -> bool:
        """Wait for a change. Returns False when that time came first."""
        with trio.move_on_at(until) as scope:
            await self._changed.wait()
        return not scope.cancelled_caught

    async def _in_thread(self, starter: Callable[[], None]) -> None:
        """Call something that blocks."""
        await trio.to_thread.run_sync(starter)


@contextmanager
def _in_time() -> Generator[None]:
    """Give a step of connecting its time, and turn its end into an OSError."""
    try:
        with trio.fail_after(_CONNECT_SECONDS):
            yield
    except trio.TooSlowError as error:
        raise TimeoutError from error
