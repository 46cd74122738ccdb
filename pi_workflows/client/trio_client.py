"""The client for trio.

Requests and news side by side over one connection that comes back when it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import trio

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation, Unavailable
from pi_workflows.base.limits import (
    CLIENT_CONNECT_MS,
    CLIENT_RESEND_MS,
    CLIENT_START_MS,
    CLIENT_START_POLL_MS,
)
from pi_workflows.client.endpoint import (
    Backoff,
    Endpoint,
    Fruitless,
    not_running,
    not_started,
    unreachable,
)
from pi_workflows.protocol.connection import Pending
from pi_workflows.protocol.envelope import Event
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.subscription import Subscription
from pi_workflows.protocol.wire import Payload

_READ_BYTES: Final = 65_536
_CONNECT_SECONDS: Final = CLIENT_CONNECT_MS / 1_000
_RESEND_SECONDS: Final = CLIENT_RESEND_MS / 1_000
_START_SECONDS: Final = CLIENT_START_MS / 1_000
_START_POLL_SECONDS: Final = CLIENT_START_POLL_MS / 1_000


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


class TrioClient:
    """A connection to the server for any number of tasks. Made by `open_client`."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Begin without a connection."""
        self._endpoint = endpoint
        self._state = endpoint.new_state()
        self._backoff = Backoff(endpoint.random)
        self._fruitless = Fruitless(endpoint.random)
        self._scope = trio.CancelScope()
        # Set and replaced whenever something changed: a reply, an event, the connection.
        self._changed = trio.Event()
        self._owes = trio.Event()
        self._lost_at: float | None = None
        self._end: Unavailable | ProtocolViolation | None = None

    @property
    def server_version(self) -> str | None:
        """The package version of the server that is connected."""
        return self._state.server_version

    def close(self) -> None:
        """End the connection. Calls that wait raise Unavailable."""
        self._scope.cancel()

    async def request(
        self,
        operation: Operation,
        payload: Payload | Json,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Reply:
        """Ask for something and wait for the answer.

        After a lost connection ask again, for 30 seconds.

        Args:
            operation: What to do.
            payload: Its payload, as a model or a JSON object.
            run_id: The run, for the operations that are about one.
            expected_revision: The revision at which the resource must still be.
            key: The idempotency key; random when None.

        Returns:
            The reply, also of a refusal: `reply.done()` raises it. A cancelled call leaves the
            command to the server.

        Raises:
            PayloadInvalid: The server would refuse it; nothing was sent.
            LimitExceeded: It does not fit a frame; nothing was sent.
            Unavailable: `versionMismatch`; or no server could be reached and nothing can have
                changed.
            OutcomeUnknown: The connection was lost after a command was sent, and no server came
                back.
            ProtocolViolation: The server broke the protocol.
        """
        pending = self._state.request(
            operation, payload, run_id=run_id, expected_revision=expected_revision, key=key
        )
        return await self._settle(pending)

    async def watch(
        self, run_id: str | None, *, revision: int | None = None, limit: int | None = None
    ) -> Subscription:
        """Subscribe to a run, or to the run list when `run_id` is None.

        Args:
            run_id: The run.
            revision: The newest presentation revision that the caller has of it.
            limit: How many runs the list shows.

        Returns:
            The subscription, for `next_event` and `unwatch`. It outlives a lost connection.

        Raises:
            Refused: The server refused it, such as NotFound for an unknown run.
            Unavailable: As `request`.
        """
        subscription, pending = self._state.watch(run_id, revision=revision, limit=limit)
        (await self._settle(pending)).done()
        return subscription

    async def unwatch(self, subscription: Subscription) -> None:
        """End a subscription. Raises as `request` does."""
        pending = self._state.unwatch(subscription)
        if pending is not None:
            await self._settle(pending)

    async def next_event(self, subscription: Subscription | None = None) -> Event:
        """Wait for news.

        Args:
            subscription: Whose; of any when None. News of the others is kept.

        Returns:
            The newest event of a subscription. While the connection is lost, one `unavailable`
            event says so; the client reconnects meanwhile.

        Raises:
            Unavailable: `serverUnreachable`: the server did not come back, which an event has said
                before.
            ProtocolViolation: The server broke the protocol.
        """
        while True:
            event = self._state.take_event(subscription)
            if event is not None:
                return event
            if self._end is not None:
                raise self._end
            await self._changed.wait()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve this connection and each one after it, until the server stays away or `close`.

        Args:
            stream: The connection that `reach` made; closed in the end.
        """
        connection: trio.SocketStream | None = stream
        try:
            with self._scope:
                while connection is not None:
                    await self._exchange(connection)
                    connection = await self._reconnect()
        finally:
            if self._end is None:
                self._end = unreachable()
            self._state.exhausted()
            self._notify()

    async def reach(self, *, may_start: bool) -> trio.SocketStream:
        """Connect and wait for the hello; start the server when it is missing.

        Args:
            may_start: Whether the endpoint's starter may be used.

        Returns:
            The connection, greeted.

        Raises:
            Unavailable: `serverNotRunning`, `serverStartFailed` or `serverUnreachable`.
            ProtocolViolation: Something else listens there.
        """
        starter = self._endpoint.starter
        try:
            return await self._dial()
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            if starter is None or not may_start:
                raise not_running() from None
        except OSError:
            raise unreachable() from None
        await trio.to_thread.run_sync(starter)
        until = trio.current_time() + _START_SECONDS
        while True:
            try:
                return await self._dial()
            except OSError:
                if trio.current_time() >= until:
                    raise not_started() from None
                await trio.sleep(_START_POLL_SECONDS)

    async def _settle(self, pending: Pending) -> Reply:
        """Wait until a request has its result."""
        asked_at = trio.current_time()
        self._owes.set()
        try:
            while (reply := pending.reply()) is None:
                lost_at = math.inf if self._lost_at is None else max(self._lost_at, asked_at)
                with trio.move_on_at(lost_at + _RESEND_SECONDS) as scope:
                    if self._end is None:
                        await self._changed.wait()
                if scope.cancelled_caught or self._end is not None:
                    self._state.give_up(pending)
            return reply
        finally:
            self._state.give_up(pending)

    async def _exchange(self, stream: trio.SocketStream) -> None:
        """Read and write until the connection is lost."""
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(self._write, stream, nursery.cancel_scope)
            await self._read(stream)
            nursery.cancel_scope.cancel()
        self._state.disconnected()
        self._lost_at = trio.current_time()
        self._notify()

    async def _read(self, stream: trio.SocketStream) -> None:
        """Take what comes until the server closes, or breaks the protocol."""
        while True:
            try:
                self._state.receive(await _receive(stream))
            except ConnectionResetError:
                return
            except ProtocolViolation as violation:
                self._end = violation
                return
            if self._state.is_restored:
                self._backoff.reset()
            if self._state.is_answered:
                self._fruitless.reset()
            self._notify()

    async def _write(self, stream: trio.SocketStream, connection: trio.CancelScope) -> None:
        """Send what is owed as soon as it is there.

        End the connection when the server takes nothing.
        """
        while True:
            if outgoing := self._state.outgoing():
                with trio.move_on_after(_RESEND_SECONDS) as scope:
                    try:
                        await stream.send_all(outgoing)
                    except trio.BrokenResourceError:
                        scope.cancel()
                if scope.cancel_called:
                    connection.cancel()
            else:
                self._owes = trio.Event()
                await self._owes.wait()

    async def _reconnect(self) -> trio.SocketStream | None:
        """Return the next connection, None when there will be none.

        Without anything owed it waits.
        """
        if self._end is not None:
            return None
        fruitless_ms = self._fruitless.next_ms()
        if fruitless_ms is None:
            return None
        await trio.sleep(fruitless_ms / 1_000)
        while self._end is None:
            while self._state.is_idle:
                self._owes = trio.Event()
                await self._owes.wait()
            try:
                stream = await self.reach(may_start=True)
            except Unavailable:
                delay_ms = self._backoff.next_ms()
                if delay_ms is None:
                    break
                await trio.sleep(delay_ms / 1_000)
            except ProtocolViolation as violation:
                self._end = violation
            else:
                self._lost_at = None
                self._notify()
                return stream
        return None

    async def _dial(self) -> trio.SocketStream:
        """Connect once and wait for the hello. Raises OSError or ProtocolViolation."""
        connection = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        stream: trio.SocketStream | None = None
        try:
            with _in_time():
                await connection.connect(self._endpoint.socket_path)
            stream = trio.SocketStream(connection)
            self._state.connected()
            with _in_time():
                while not self._state.is_ready:
                    self._state.receive(await _receive(stream))
        except BaseException:
            connection.close()
            self._state.connected()
            raise
        return stream

    def _notify(self) -> None:
        """Wake everyone who waits for a change."""
        self._changed.set()
        self._changed = trio.Event()


async def _receive(stream: trio.SocketStream) -> bytes:
    """Read once. Raises ConnectionResetError when the server has closed."""
    try:
        data = await stream.receive_some(_READ_BYTES)
    except trio.BrokenResourceError as error:
        raise ConnectionResetError from error
    if not data:
        raise ConnectionResetError
    return data


@contextmanager
def _in_time() -> Generator[None]:
    """Give a step of connecting its time, and turn its end into an OSError."""
    try:
        with trio.fail_after(_CONNECT_SECONDS):
            yield
    except trio.TooSlowError as error:
        raise TimeoutError from error
