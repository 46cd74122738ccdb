"""What the clients for trio and for asyncio share: everything but the event loop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation, Unavailable
from pi_workflows.base.limits import (
    CLIENT_RESEND_MS,
    CLIENT_START_MS,
    CLIENT_START_POLL_MS,
    RUN_LIST_DEFAULT,
)
from pi_workflows.client.async_feed import AsyncFeed
from pi_workflows.client.endpoint import (
    Backoff,
    Endpoint,
    Fruitless,
    not_running,
    not_started,
    unreachable,
)
from pi_workflows.protocol.artifact import Download
from pi_workflows.protocol.connection import Pending
from pi_workflows.protocol.envelope import Event
from pi_workflows.protocol.list_mirror import RunListMirror
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.session_mirror import SessionMirror
from pi_workflows.protocol.subscription import Subscription
from pi_workflows.protocol.watching import AnyWatch, MirrorT, News, Watch, Watching
from pi_workflows.protocol.wire import Payload

StreamT = TypeVar("StreamT")

READ_BYTES: Final = 65_536
RESEND_SECONDS: Final = CLIENT_RESEND_MS / 1_000
_START_SECONDS: Final = CLIENT_START_MS / 1_000
_START_POLL_SECONDS: Final = CLIENT_START_POLL_MS / 1_000


class Signal(Protocol):
    """An event of an event loop: set once, seen by everybody who waits."""

    def set(self) -> None:
        """Wake everybody."""
        ...

    async def wait(self) -> object:
        """Wait until it is set."""
        ...


class AsyncClient(ABC, Generic[StreamT]):
    """A connection to the server for any number of tasks, which comes back when it is lost.

    Args:
        endpoint: Where the server is and who asks.
        new_signal: Makes an event of the loop.
    """

    def __init__(self, endpoint: Endpoint, new_signal: Callable[[], Signal]) -> None:
        """Begin without a connection."""
        self._endpoint = endpoint
        self._state = endpoint.new_state()
        self._watching = Watching(self._state)
        self._backoff = Backoff(endpoint.random)
        self._fruitless = Fruitless(endpoint.random)
        self._new_signal = new_signal
        # Set and replaced whenever something changed: a reply, an event, the connection.
        self._changed = new_signal()
        self._owes = new_signal()
        self._lost_at: float | None = None
        self._end: Unavailable | ProtocolViolation | None = None

    @property
    def server_version(self) -> str | None:
        """The package version of the server that is connected."""
        return self._state.server_version

    @abstractmethod
    def close(self) -> None:
        """End the connection. Calls that wait raise Unavailable."""

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

    async def content(self, run_id: str, value: Json) -> Json:
        """Return a value of a run view as the run has it.

        Args:
            run_id: The run whose view it stood in.
            value: The value, or a reference to its content, which is then fetched and verified.

        Raises:
            ProtocolViolation: The content is not the one that the reference names.
            NotFound: The run is gone, or names no such content any more.
            Unavailable: As `request`.
        """
        download = Download(run_id, value)
        while (wanted := download.wanted) is not None:
            reply = await self.request(Operation.VIEW_CONTENT, wanted, run_id=run_id)
            download.take(reply.done().receipt)
        return download.value

    # --- mirrors ---------------------------------------------------------------------------------

    def watch_run(self, run_id: str) -> AsyncFeed[RunMirror]:
        """Mirror a run.

        Args:
            run_id: The run.

        Returns:
            `async with` begins it, `async for` gives the mirror with each change. Beginning raises
            NotFound for an unknown run, and otherwise as `request`.
        """
        return AsyncFeed(self, lambda: self._watching.run(run_id))

    def watch_list(self, limit: int | None = RUN_LIST_DEFAULT) -> AsyncFeed[RunListMirror]:
        """Mirror the run list.

        Args:
            limit: How many of the newest runs; every run when None.

        Returns:
            As `watch_run`.
        """
        return AsyncFeed(self, lambda: self._watching.run_list(limit))

    def watch_session(
        self, session_id: str, *, is_coordinator: bool = False, node_cursor: int | None = None
    ) -> AsyncFeed[SessionMirror]:
        """Mirror what a Pi session works on.

        Args:
            session_id: The session.
            is_coordinator: Speak for the session, on each connection under a new epoch, which
                `watch.subscription.session` of the feed tells.
            node_cursor: The index of the first node shown; None follows the working node.

        Returns:
            As `watch_run`.
        """
        return AsyncFeed(
            self,
            lambda: self._watching.session(
                session_id, is_coordinator=is_coordinator, node_cursor=node_cursor
            ),
        )

    async def begin(self, begun: tuple[Watch[MirrorT], Pending]) -> Watch[MirrorT]:
        """Wait until the server has accepted a watch. Raises as `watch_run` says."""
        watch, pending = begun
        try:
            (await self._settle(pending)).done()
        except BaseException:
            self.end(watch)
            raise
        return watch

    def end(self, watch: AnyWatch) -> None:
        """End a watch; its mirror stays as it is."""
        self._watching.end(watch)
        self._owes.set()

    async def next_news(self, watch: AnyWatch | None = None) -> News:
        """Wait for a change.

        Args:
            watch: Whose; of any feed that has begun when None.

        Returns:
            What changed, and whose. While the connection is lost, one change says so; the client
            reconnects meanwhile.

        Raises:
            Unavailable: `serverUnreachable`: the server did not come back, which a change has said
                before.
            ProtocolViolation: The server broke the protocol.
        """
        while True:
            news = self._watching.take(watch)
            self._owes.set()  # for what a mirror asks for
            if news is not None:
                return news
            if self._end is not None:
                raise self._end
            await self._changed.wait()

    # --- events ----------------------------------------------------------------------------------

    async def watch(
        self, run_id: str | None, *, revision: int | None = None, limit: int | None = None
    ) -> Subscription:
        """Subscribe to the events of a run as they come, or of the run list when `run_id` is None.

        Args:
            run_id: The run.
            revision: The newest presentation revision that the caller has of it.
            limit: How many runs a list shows.

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
            The next event of a subscription; a whole view or list replaces those before it. While
            the connection is lost, one `unavailable` event says so; the client reconnects
            meanwhile.

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

    # --- the connection --------------------------------------------------------------------------

    async def serve(self, stream: StreamT) -> None:
        """Serve this connection and each one after it, until the server stays away or `close`.

        Args:
            stream: The connection that `reach` made; closed in the end.
        """
        connection: StreamT | None = stream
        try:
            while connection is not None:
                await self._exchange(connection)
                self._state.disconnected()
                self._lost_at = self._now()
                self._notify()
                connection = await self._reconnect()
        finally:
            self._finish()

    async def reach(self, *, may_start: bool) -> StreamT:
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
        await self._in_thread(starter)
        until = self._now() + _START_SECONDS
        while True:
            try:
                return await self._dial()
            except OSError:
                if self._now() >= until:
                    raise not_started() from None
                await self._sleep(_START_POLL_SECONDS)

    async def _reconnect(self) -> StreamT | None:
        """Return the next connection, None when there will be none.

        Without anything owed it waits.
        """
        if self._end is not None:
            return None
        fruitless_ms = self._fruitless.next_ms()
        if fruitless_ms is None:
            return None
        await self._sleep(fruitless_ms / 1_000)
        while self._end is None:
            while self._state.is_idle:
                await self._owed()
            try:
                stream = await self.reach(may_start=True)
            except Unavailable:
                delay_ms = self._backoff.next_ms()
                if delay_ms is None:
                    break
                await self._sleep(delay_ms / 1_000)
            except ProtocolViolation as violation:
                self._end = violation
            else:
                self._lost_at = None
                self._notify()
                return stream
        return None

    def _finish(self) -> None:
        """End everything: there will be no other connection."""
        if self._end is None:
            self._end = unreachable()
        self._state.exhausted()
        self._notify()

    async def _settle(self, pending: Pending) -> Reply:
        """Wait until a request has its result."""
        asked_at = self._now()
        self._owes.set()
        try:
            while (reply := pending.reply()) is None:
                lost_at = math.inf if self._lost_at is None else max(self._lost_at, asked_at)
                is_in_time = self._end is None and await self._changed_before(
                    lost_at + RESEND_SECONDS
                )
                if not is_in_time or self._end is not None:
                    self._state.give_up(pending)
            return reply
        finally:
            self._state.give_up(pending)

    async def _greet(self, stream: StreamT) -> None:
        """Wait for the hello of a new connection. Raises OSError or ProtocolViolation."""
        self._state.connected()
        while not self._state.is_ready:
            self._state.receive(await self._receive(stream))

    async def _read(self, stream: StreamT) -> None:
        """Take what comes until the server closes, or breaks the protocol."""
        while True:
            try:
                self._state.receive(await self._receive(stream))
            except OSError:
                return
            except ProtocolViolation as violation:
                self._end = violation
                return
            if self._state.is_restored:
                self._backoff.reset()
            if self._state.is_answered:
                self._fruitless.reset()
            self._notify()

    def _notify(self) -> None:
        """Wake everyone who waits for a change."""
        self._changed.set()
        self._changed = self._new_signal()

    async def _owed(self) -> None:
        """Wait until there may be something to send."""
        self._owes = self._new_signal()
        await self._owes.wait()

    # --- the event loop --------------------------------------------------------------------------

    @abstractmethod
    def _now(self) -> float:
        """Return the loop's time in seconds."""

    @abstractmethod
    async def _sleep(self, seconds: float) -> None:
        """Let that much time pass."""

    @abstractmethod
    async def _changed_before(self, until: float) -> bool:
        """Wait for a change. Returns False when that time came first."""

    @abstractmethod
    async def _in_thread(self, starter: Callable[[], None]) -> None:
        """Call something that blocks."""

    @abstractmethod
    async def _dial(self) -> StreamT:
        """Connect once and wait for the hello. Raises OSError or ProtocolViolation."""

    @abstractmethod
    async def _receive(self, stream: StreamT) -> bytes:
        """Read once. Raises OSError when the connection is gone."""

    @abstractmethod
    async def _exchange(self, stream: StreamT) -> None:
        """Read and write until the connection is lost, and close it."""
