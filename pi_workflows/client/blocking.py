"""The client that waits: one thread, one socket, every call returns when its answer is there."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock, SystemClock
from pi_workflows.base.errors import Unavailable
from pi_workflows.base.limits import (
    CLIENT_CONNECT_MS,
    CLIENT_RESEND_MS,
    CLIENT_START_MS,
    CLIENT_START_POLL_MS,
    RUN_LIST_DEFAULT,
)
from pi_workflows.client.endpoint import (
    Backoff,
    Endpoint,
    Fruitless,
    not_running,
    not_started,
    unreachable,
)
from pi_workflows.client.feed import Feed
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

T = TypeVar("T")

_READ_BYTES: Final = 65_536
_NS_PER_MS: Final = 1_000_000
_MS_PER_SECOND: Final = 1_000


class Client:
    """A connection to the server that comes back when it is lost.

    Used as a context manager it connects on entry and closes on exit. Not for several threads.

    Args:
        endpoint: Where the server is and who asks.
        clock: Measures the time until a lost reply is given up.
        sleep: Waits for that many seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin without a connection."""
        self._endpoint = endpoint
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._sleep = sleep
        self._state = endpoint.new_state()
        self._watching = Watching(self._state)
        self._backoff = Backoff(endpoint.random)
        self._fruitless = Fruitless(endpoint.random)
        self._socket: socket.socket | None = None
        self._lost_at_ms: int | None = None
        self._retry_at_ms = 0
        self._is_over = False

    def __enter__(self) -> Self:
        """Connect. Raises as `connect` does."""
        self.connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def connect(self) -> None:
        """Connect to the server and wait for its hello.

        Start it when it is missing and may be started.

        Raises:
            Unavailable: `serverNotRunning`, `serverStartFailed` or `serverUnreachable`.
            ProtocolViolation: Something else listens there.
        """
        self._reach(may_start=True)

    def close(self) -> None:
        """Close the connection. What is pending stays unanswered."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def server_version(self) -> str | None:
        """The package version of the server that is connected."""
        return self._state.server_version

    def request(
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
            The reply, also of a refusal: `reply.done()` raises it.

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
        return self._settle(pending)

    def content(self, run_id: str, value: Json) -> Json:
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
            reply = self.request(Operation.VIEW_CONTENT, wanted, run_id=run_id)
            download.take(reply.done().receipt)
        return download.value

    # --- mirrors ---------------------------------------------------------------------------------

    def watch_run(self, run_id: str) -> Feed[RunMirror]:
        """Mirror a run.

        Args:
            run_id: The run.

        Returns:
            `with` begins it, `for` gives the mirror with each change. Beginning raises NotFound for
            an unknown run, and otherwise as `request`.
        """
        return Feed(self, lambda: self._watching.run(run_id))

    def watch_list(self, limit: int | None = RUN_LIST_DEFAULT) -> Feed[RunListMirror]:
        """Mirror the run list.

        Args:
            limit: How many of the newest runs; every run when None.

        Returns:
            As `watch_run`.
        """
        return Feed(self, lambda: self._watching.run_list(limit))

    def watch_session(
        self, session_id: str, *, is_coordinator: bool = False, node_cursor: int | None = None
    ) -> Feed[SessionMirror]:
        """Mirror what a Pi session works on.

        Args:
            session_id: The session.
            is_coordinator: Speak for the session, on each connection under a new epoch, which
                `watch.subscription.session` of the feed tells.
            node_cursor: The index of the first node shown; None follows the working node.

        Returns:
            As `watch_run`.
        """
        return Feed(
            self,
            lambda: self._watching.session(
                session_id, is_coordinator=is_coordinator, node_cursor=node_cursor
            ),
        )

    def begin(self, begun: tuple[Watch[MirrorT], Pending]) -> Watch[MirrorT]:
        """Wait until the server has accepted a watch. Raises as `watch_run` says."""
        watch, pending = begun
        try:
            self._settle(pending).done()
        except BaseException:
            self._watching.end(watch)
            raise
        return watch

    def end(self, watch: AnyWatch) -> None:
        """End a watch; its mirror stays as it is. The server learns it with the next request."""
        self._watching.end(watch)

    def next_news(
        self,
        watch: AnyWatch | None = None,
        *,
        timeout_ms: int | None = None,
        beside: int | None = None,
    ) -> News | None:
        """Wait for a change.

        Args:
            watch: Whose; of any feed that has begun when None.
            timeout_ms: How long to wait; None waits without end, 0 takes what has arrived.
            beside: A descriptor, such as that of standard input; it ends the waiting as soon as it
                can be read.

        Returns:
            What changed, and whose, or None when the time has passed or `beside` can be read. While
            the connection is lost, one change says so; the client reconnects meanwhile.

        Raises:
            Unavailable: `serverUnreachable`: the server did not come back, which a change has said
                before.
            ProtocolViolation: The server broke the protocol.
        """
        return self._next(partial(self._watching.take, watch), timeout_ms, beside)

    # --- events ----------------------------------------------------------------------------------

    def watch(
        self, run_id: str | None, *, revision: int | None = None, limit: int | None = None
    ) -> Subscription:
        """Subscribe to the events of a run as they come, or of the run list when `run_id` is None.

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
        self._settle(pending).done()
        return subscription

    def unwatch(self, subscription: Subscription) -> None:
        """End a subscription. Raises as `request` does."""
        pending = self._state.unwatch(subscription)
        if pending is not None:
            self._settle(pending)

    def next_event(
        self, subscription: Subscription | None = None, *, timeout_ms: int | None = None
    ) -> Event | None:
        """Wait for news.

        Args:
            subscription: Whose; of any when None. News of the others is kept.
            timeout_ms: How long to wait; None waits without end, 0 takes what has arrived.

        Returns:
            The next event of a subscription, or None when the time has passed; a whole view or list
            replaces those before it. While the connection is lost, one `unavailable` event says so;
            the client reconnects meanwhile.

        Raises:
            Unavailable: `serverUnreachable`: the server did not come back, which an event has said
                before.
            ProtocolViolation: The server broke the protocol.
        """
        return self._next(partial(self._state.take_event, subscription), timeout_ms)

    # --- the connection --------------------------------------------------------------------------

    def _next(
        self,
        take: Callable[[], T | None],
        timeout_ms: int | None,
        beside: int | None = None,
    ) -> T | None:
        """Go on until there is something to take, the time has passed, or a file can be read."""
        until_ms = None if timeout_ms is None else self._now_ms() + timeout_ms
        while (taken := take()) is None:
            if self._is_over:
                raise unreachable()
            if self._step(until_ms, beside):
                continue
            if until_ms is not None and self._now_ms() >= until_ms:
                return None
            if beside is not None and select.select((beside,), (), (), 0)[0]:
                return None
        return taken

    def _settle(self, pending: Pending) -> Reply:
        """Go on until a request has its result."""
        asked_at_ms = self._now_ms()
        try:
            while (reply := pending.reply()) is None:
                lost_at_ms = self._lost_at_ms
                until_ms = None
                if lost_at_ms is not None:
                    until_ms = max(lost_at_ms, asked_at_ms) + CLIENT_RESEND_MS
                if self._is_over or (until_ms is not None and self._now_ms() >= until_ms):
                    self._state.give_up(pending)
                else:
                    self._step(until_ms)
            return reply
        finally:
            self._state.give_up(pending)

    def _step(self, until_ms: int | None, beside: int | None = None) -> bool:
        """Do one thing.

        Reconnect, or send what is owed and read once. Returns whether anything came of it.
        """
        try:
            if self._socket is None:
                return self._reconnect(until_ms, beside)
            return self._exchange(self._socket, until_ms, beside)
        except TimeoutError:
            return False
        except OSError:
            self._lose()
            return True
        except BaseException:
            # A violation, or an interrupt inside a frame: this connection is of no more use.
            self._lose()
            raise

    def _exchange(
        self, connection: socket.socket, until_ms: int | None, beside: int | None
    ) -> bool:
        """Send what is owed and read once.

        A read that waits until the time has passed, or until another file can be read, is a
        TimeoutError.
        """
        if outgoing := self._state.outgoing():
            connection.settimeout(CLIENT_RESEND_MS / _MS_PER_SECOND)
            try:
                connection.sendall(outgoing)
            except TimeoutError as error:
                raise ConnectionError from error
        left_seconds = None if until_ms is None else self._left_seconds(until_ms)
        if beside is not None:
            ready = select.select((connection.fileno(), beside), (), (), left_seconds)[0]
            if connection.fileno() not in ready:
                raise TimeoutError
        connection.settimeout(left_seconds)
        self._state.receive(_read(connection))
        if self._state.is_restored:
            self._backoff.reset()
        if self._state.is_answered:
            self._fruitless.reset()
        return True

    def _reconnect(self, until_ms: int | None, beside: int | None) -> bool:
        """Wait for the next attempt's time and make it, or wait as long as the caller does."""
        wake_at_ms = self._retry_at_ms if until_ms is None else min(until_ms, self._retry_at_ms)
        if beside is None:
            self._sleep(self._left_seconds(wake_at_ms))
        elif select.select((beside,), (), (), self._left_seconds(wake_at_ms))[0]:
            return False
        if wake_at_ms < self._retry_at_ms:
            return False
        try:
            self._reach(may_start=not self._state.is_idle)
        except Unavailable:
            delay_ms = self._backoff.next_ms()
            if delay_ms is None:
                self._is_over = True
                self._state.exhausted()
            else:
                self._retry_at_ms = self._now_ms() + delay_ms
        return True

    def _reach(self, *, may_start: bool) -> None:
        """Connect; start the server when it is missing. Raises Unavailable."""
        starter = self._endpoint.starter
        try:
            self._dial()
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            if starter is None or not may_start:
                raise not_running() from None
        except OSError:
            raise unreachable() from None
        else:
            return
        starter()
        until_ms = self._now_ms() + CLIENT_START_MS
        while True:
            try:
                self._dial()
            except OSError:
                if self._now_ms() >= until_ms:
                    raise not_started() from None
                self._sleep(CLIENT_START_POLL_MS / _MS_PER_SECOND)
            else:
                return

    def _dial(self) -> None:
        """Connect once and wait for the hello. Raises OSError."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CLIENT_CONNECT_MS / _MS_PER_SECOND)
            connection.connect(self._endpoint.socket_path)
            self._state.connected()
            until_ms = self._now_ms() + CLIENT_CONNECT_MS
            while not self._state.is_ready:
                connection.settimeout(self._left_seconds(until_ms))
                self._state.receive(_read(connection))
        except BaseException:
            connection.close()
            self._state.connected()
            raise
        self._socket = connection
        self._lost_at_ms = None

    def _lose(self) -> None:
        """Note that the connection is gone."""
        self.close()
        self._state.disconnected()
        if self._lost_at_ms is None:
            self._lost_at_ms = self._now_ms()
        delay_ms = self._fruitless.next_ms()
        if delay_ms is None:
            self._is_over = True
            self._state.exhausted()
        else:
            self._retry_at_ms = self._now_ms() + delay_ms

    def _now_ms(self) -> int:
        """Return the monotonic time."""
        return self._clock.monotonic_ns() // _NS_PER_MS

    def _left_seconds(self, until_ms: int) -> float:
        """Return the time that is left, never below zero."""
        return max(until_ms - self._now_ms(), 0) / _MS_PER_SECOND


def _read(connection: socket.socket) -> bytes:
    """Read once.

    Raises:
        TimeoutError: Nothing came in the connection's time.
        ConnectionResetError: The server has closed.
    """
    try:
        data = connection.recv(_READ_BYTES)
    except BlockingIOError as error:
        raise TimeoutError from error
    if not data:
        raise ConnectionResetError
    return data
