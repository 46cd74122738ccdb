"""One client's connection: hello first, then requests in, responses and events out.

Three kinds of task in one nursery (the client protocol, "Subscriptions"): a reader, a writer, and
one child a request, so that replies come in any order and a long command blocks nothing. The writer
sends responses first, then builds the newest event of one dirty subscription at a time: never two
events on the wire, never a queue of them. While it rests, an event that the socket takes at once is
sent without it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

import trio

from pi_workflows.base.errors import (
    LimitExceeded,
    NotFound,
    ProtocolViolation,
    Refused,
    Unavailable,
    WorkflowsError,
)
from pi_workflows.base.limits import (
    INFLIGHT_REQUESTS_MAX,
    SLOW_CLIENT_MS,
    SOCKET_READ_BYTES,
    SUBSCRIPTIONS_MAX,
)
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.protocol import envelope
from pi_workflows.protocol.broadcast import Broadcast
from pi_workflows.protocol.envelope import Event, EventKind, Hello, Request, Response
from pi_workflows.protocol.frames import FrameReader
from pi_workflows.protocol.refusal import refuse
from pi_workflows.protocol.views import SubscriptionFailure
from pi_workflows.server.authority import Speaker
from pi_workflows.server.coordinators import Coordinators
from pi_workflows.server.hub import Hub, SessionWindow, Subscription
from pi_workflows.server.log import ServerLog
from pi_workflows.server.operator import Proof


class Answerer(Protocol):
    """Answers one request of a connection. Refusals and unavailability are raised."""

    async def __call__(self, request: Request, session: Session, /) -> Response:
        """Return the response."""
        ...


EventBuilder: TypeAlias = Callable[[Subscription], Broadcast]
"""Builds the newest event of a subscription. Raises NotFound when its run is gone."""


class Session:
    """The server's end of one connection.

    Args:
        stream: The connection; closed at the end, however it ends.
        connection_id: Its name in the log and in hello.
        speaker: What the server knows about the other end, whatever session it coordinates.
        package_version: Our own version.
        answer: Answers requests.
        build: Builds events.
        hub: Marks the subscriptions.
        coordinators: Who coordinates which session.
        log: The server's log.

    Attributes:
        proof: That a person proved the passphrase on it; None unless one did.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        connection_id: str,
        speaker: Speaker,
        package_version: str,
        answer: Answerer,
        build: EventBuilder,
        hub: Hub,
        coordinators: Coordinators,
        log: ServerLog,
    ) -> None:
        self._stream = stream
        self.connection_id = connection_id
        self.speaker = speaker
        self._package_version = package_version
        self._answer = answer
        self._build = build
        self._hub = hub
        self.coordinators = coordinators
        self.proof: Proof | None = None
        self._log = log
        self._slots = trio.Semaphore(INFLIGHT_REQUESTS_MAX)
        self._responses: deque[Response] = deque()
        self._subscriptions: dict[str, Subscription] = {}
        self._wake = trio.Event()
        self._is_resting = False
        self._unsent = b""
        self._scope = trio.CancelScope()
        self._fault: ProtocolViolation | None = None
        self._reading = trio.CancelScope()
        self._unanswered = 0
        self._is_finishing = False
        self._finished = trio.Event()

    async def run(self) -> None:
        """Serve the connection until the client closes it or does something that ends it.

        Commands that were handed to the writer are done whatever becomes of the connection.

        Raises:
            ProtocolViolation: The client broke the protocol, or took nothing for a minute (`slow`).
        """
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    with self._reading:
                        await self._read(nursery)
                    if self._is_finishing:
                        await trio.sleep_forever()
                    self._scope.cancel()
        finally:
            self._finished.set()
            for subscription_id in tuple(self._subscriptions):
                self.unsubscribe(subscription_id)
            with trio.CancelScope(shield=True, deadline=trio.current_time()):
                await self._stream.aclose()
        if self._fault is not None:
            raise self._fault

    async def finish(self) -> None:
        """Read nothing more, send every reply that is owed, and then hold the connection open.

        It is closed when `run` is cancelled: until then the client sees that the server still works
        on its end.
        """
        self._is_finishing = True
        self._reading.cancel()
        self._wake_writer()
        await self._finished.wait()

    # --- subscriptions ---------------------------------------------------------------------------

    def subscribe(
        self,
        subscription_id: str,
        run_id: str | None,
        *,
        limit: int | None = None,
        revision: int | None = None,
        window: SessionWindow | None = None,
    ) -> None:
        """Begin a subscription, in the place of an earlier one of the same ID.

        Args:
            subscription_id: The client's name for it.
            run_id: The run; None for a session or the run list.
            limit: How many runs a list shows.
            revision: The presentation revision of the run that the client has.
            window: The session, and which of its nodes are shown.

        Raises:
            LimitExceeded: The connection has too many.
        """
        self.require_room(subscription_id)
        self.unsubscribe(subscription_id)
        subscription = Subscription(
            subscription_id=subscription_id,
            run_id=run_id,
            connection_id=self.connection_id,
            tell=self._tell,
            limit=limit,
            revision=revision,
            window=window,
        )
        self._subscriptions[subscription_id] = subscription
        self._hub.add(subscription)

    def require_room(self, subscription_id: str) -> None:
        """Refuse one subscription too many. Raises LimitExceeded (`subscriptionsTooMany`)."""
        others = len(self._subscriptions.keys() - {subscription_id})
        if others >= SUBSCRIPTIONS_MAX:
            raise LimitExceeded(
                f"A connection may have {SUBSCRIPTIONS_MAX} subscriptions.",
                code="subscriptionsTooMany",
                field="subscriptionId",
            )

    def move(self, subscription_id: str, node_cursor: int | None) -> None:
        """Show other nodes of a watched session.

        Args:
            subscription_id: Its subscription.
            node_cursor: The first node shown; None follows the working node.

        Raises:
            NotFound: `subscriptionMissing`: there is no subscription to a session of that name.
        """
        subscription = self._subscriptions.get(subscription_id)
        if subscription is None or subscription.window is None:
            raise NotFound(
                f"This connection watches no session as {subscription_id}.",
                code="subscriptionMissing",
                field="subscriptionId",
            )
        subscription.window = subscription.window._replace(node_cursor=node_cursor)
        subscription.is_dirty = True
        self._wake_writer()

    def unsubscribe(self, subscription_id: str) -> None:
        """End a subscription, and with it what it coordinates; one that is not there is ignored."""
        subscription = self._subscriptions.pop(subscription_id, None)
        if subscription is not None:
            self._hub.remove(subscription)
            self.coordinators.release(self.connection_id, subscription_id)

    # --- in --------------------------------------------------------------------------------------

    async def _read(self, nursery: trio.Nursery) -> None:
        """Start a task for each request; stop reading while too many are unanswered."""
        reader = FrameReader()
        try:
            while data := await self._stream.receive_some(SOCKET_READ_BYTES):
                for frame in reader.feed(bytes(data)):
                    request = envelope.decode_request(frame)
                    await self._slots.acquire()
                    self._unanswered += 1
                    nursery.start_soon(self._respond, request)
            reader.end()
        except ProtocolViolation as violation:
            self._fault = violation
        except trio.BrokenResourceError:
            # The client is gone; what it asked for is decided all the same.
            return

    async def _respond(self, request: Request) -> None:
        """Answer one request."""
        try:
            response = await self._answer(request, self)
        except (Refused, Unavailable) as error:
            response = refuse(request.request_id, error)
        self._responses.append(response)
        self._wake_writer()

    # --- out -------------------------------------------------------------------------------------

    def _wake_writer(self) -> None:
        """Tell the writer that there may be something to send."""
        self._wake.set()

    async def _write(self) -> None:
        """Say hello, then send responses first and one event at a time."""
        await self._send(self._hello())
        while True:
            self._wake = trio.Event()
            # A command's commit wakes this task and the one that answers the command: let it.
            await trio.lowlevel.checkpoint()
            if self._unsent:
                data, self._unsent = self._unsent, b""
                await self._send(data)
            elif self._responses:
                await self._send_responses()
            elif self._is_finishing:
                if not self._unanswered:
                    self._finished.set()
                await self._wake.wait()
            elif (dirty := self._next_dirty()) is not None:
                await self._send(self._event(dirty))
            else:
                await self._rest()

    async def _rest(self) -> None:
        """Wait for something to send, while `_tell` may send events."""
        self._is_resting = True
        try:
            await self._wake.wait()
        finally:
            self._is_resting = False

    def _tell(self) -> None:
        """Send the newest event as far as the socket takes it now; otherwise wake the writer."""
        if self._is_resting and not self._wake.is_set() and not self._is_finishing:
            dirty = self._next_dirty()
            if dirty is None:
                return
            self._unsent = self._taken(self._event(dirty))
            if not self._unsent:
                return
        self._wake_writer()

    def _taken(self, data: bytes) -> bytes:
        """Write what the socket takes without waiting; return the rest.

        A frame that is written here costs a fifth of one that is awaited.
        """
        if not isinstance(self._stream, trio.SocketStream):
            return data
        try:
            return data[os.write(self._stream.socket.fileno(), data) :]
        except BlockingIOError:
            return data
        except OSError:
            self._scope.cancel()
            return b""

    async def _send_responses(self) -> None:
        """Send every response that is ready, and let as many requests in again."""
        count = len(self._responses)
        frames = [_encoded(self._responses.popleft()) for _ in range(count)]
        await self._send(b"".join(frames))
        self._unanswered -= count
        for _ in range(count):
            self._slots.release()

    def _next_dirty(self) -> Subscription | None:
        """Return the dirty subscription that has waited longest, and put it behind the others."""
        for subscription_id, subscription in self._subscriptions.items():
            if subscription.is_dirty:
                self._subscriptions[subscription_id] = self._subscriptions.pop(subscription_id)
                return subscription
        return None

    def _event(self, subscription: Subscription) -> bytes:
        """Build the newest event of a subscription; without one the subscription ends."""
        subscription.is_dirty = False
        self._hub.forget(subscription)
        try:
            news = self._build(subscription)
            frame = news.frame(subscription.subscription_id)
        except NotFound as error:
            reason, message = "run_removed", error.message
        except WorkflowsError as error:
            self._log.limited(
                "projection.failed", connection=self.connection_id, code=error.reason_code
            )
            reason, message = "projection_failed", "The view cannot be shown."
        else:
            subscription.sent_total += 1
            subscription.revision = news.revision
            return frame
        self.unsubscribe(subscription.subscription_id)
        failure = SubscriptionFailure.model_validate({"reason_code": reason, "message": message})
        return envelope.encode(
            Event(
                subscription_id=subscription.subscription_id,
                event=EventKind.UNAVAILABLE,
                payload=failure.document(),
                run_id=subscription.run_id,
            )
        )

    async def _send(self, data: bytes) -> None:
        """Write bytes; a client that takes them too slowly is given up."""
        data = self._taken(data)
        if not data:
            return
        patience = trio.move_on_after(SLOW_CLIENT_MS / MS_PER_SECOND)
        try:
            with patience:
                await self._stream.send_all(data)
        except trio.BrokenResourceError:
            self._scope.cancel()
        if patience.cancelled_caught:
            self._fault = ProtocolViolation("nothing was taken for a minute", code="slow")
            self._scope.cancel()

    def _hello(self) -> bytes:
        """Return the first frame."""
        return envelope.encode(
            Hello(connection_id=self.connection_id, package_version=self._package_version)
        )


def _encoded(response: Response) -> bytes:
    """Return a response as its frame; one that fits none is refused instead."""
    try:
        return envelope.encode(response)
    except LimitExceeded as error:
        return envelope.encode(refuse(response.request_id, error))
