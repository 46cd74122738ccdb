"""The client's side of the protocol without a socket: what to send, what came, what is still owed.

A shell around it moves bytes and waits. The state outlives connections: unanswered requests are
sent again with a new request ID and the same key, subscriptions are restored from the last revision
that was taken, and a reply to a request ID of an earlier connection is ignored (the client
protocol, sections 3 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    Outcome,
    OutcomeUnknown,
    ProtocolViolation,
    Unavailable,
    WorkflowsError,
)
from pi_workflows.protocol import envelope
from pi_workflows.protocol.coordination import ViewSessionWindow
from pi_workflows.protocol.envelope import Event, EventKind, Hello, Request, Response
from pi_workflows.protocol.frames import FrameReader
from pi_workflows.protocol.operations import OPERATIONS, Operation, OperationClass, read_payload
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.subscription import Subscription, WatchedSession
from pi_workflows.protocol.views import (
    FailureReason,
    SubscriptionFailure,
    Unsubscribed,
    ViewRunUnwatch,
)
from pi_workflows.protocol.wire import Payload

_LOST: Final = "The connection to the server was lost."
_REFUSED: Final = "The server refused to go on with a subscription."
_EXHAUSTED: Final = "The server could not be reached again."
# Events whose revision is the run's: a client that took one has the run at it.
_AT_REVISION: Final = frozenset({EventKind.RUN_SNAPSHOT, EventKind.RUN_PATCH})
_UNSUBSCRIBED: Final = Reply(Outcome.ACCEPTED, receipt=Unsubscribed(subscribed=False).document())


@dataclass(slots=True, eq=False)
class Pending:
    """A request without a reply yet.

    Attributes:
        request: As it was sent last.
        was_sent: Whether the server may have seen it.
        result: The reply, or why there will be none.
    """

    request: Request
    subscription: Subscription | None = None
    was_sent: bool = False
    result: Reply | WorkflowsError | None = None

    def reply(self) -> Reply | None:
        """Return the reply when it is there, and raise when there will be none."""
        if isinstance(self.result, WorkflowsError):
            raise self.result
        return self.result


class ClientState:
    """Everything that a client knows, whatever connection it has.

    Args:
        client_id: The same in every request of this client.
        package_version: Our own; a server of another version is asked for its status or its end
            only.
        new_id: Makes an identity from a prefix that no one else has.
    """

    def __init__(
        self, *, client_id: str, package_version: str, new_id: Callable[[str], str]
    ) -> None:
        """Begin without a connection."""
        self._client_id = client_id
        self._package_version = package_version
        self._new_id = new_id
        self._reader = FrameReader()
        self._hello: Hello | None = None
        self._outgoing = bytearray()
        self._pending: dict[str, Pending] = {}
        self._subscriptions: dict[str, Subscription] = {}
        # Those that have something to tell, the one that waits longest first. A subscription that
        # has ended may still have its last event here.
        self._telling: dict[str, Subscription] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the server has greeted us on this connection."""
        return self._hello is not None

    @property
    def is_restored(self) -> bool:
        """Whether it has also answered for every subscription."""
        return self.is_ready and not any(p.subscription for p in self._pending.values())

    @property
    def is_answered(self) -> bool:
        """Whether it has also answered everything else that it was asked."""
        return self.is_ready and not self._pending

    @property
    def is_idle(self) -> bool:
        """Whether nothing is owed to us: no reply and no event."""
        return not self._pending and not self._subscriptions

    @property
    def server_version(self) -> str | None:
        """The server's package version, once it has greeted us."""
        return self._hello.package_version if self._hello else None

    # --- the connection --------------------------------------------------------------------------

    def connected(self) -> None:
        """Note a new connection. Nothing is sent on it before the server's hello."""
        self._reader = FrameReader()
        self._hello = None
        self._outgoing.clear()

    def disconnected(self) -> None:
        """Note that the connection is gone.

        Subscriptions learn it; requests wait for the next one.
        """
        was_ready = self.is_ready
        self.connected()
        for pending in tuple(self._pending.values()):
            if pending.request.operation is Operation.VIEW_RUN_UNWATCH:
                # Every subscription of a connection ends with it.
                del self._pending[pending.request.request_id]
                pending.result = _UNSUBSCRIBED
        for subscription in self._subscriptions.values():
            subscription.coordinates(None)
        if was_ready:
            self._tell_all("connection_lost", _LOST)

    def outgoing(self) -> bytes:
        """Return, once, the bytes to send now."""
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def receive(self, data: bytes) -> None:
        """Take bytes from the connection.

        Args:
            data: What was read.

        Raises:
            ProtocolViolation: The server broke the protocol: close the connection. What came before
                it counts.
        """
        for frame in self._reader.feed(data):
            message = envelope.decode_from_server(frame)
            if isinstance(message, Hello):
                self._greeted(message)
            elif self._hello is None:
                raise ProtocolViolation("the server began without hello", code="helloMissing")
            elif isinstance(message, Response):
                self._answered(message)
            else:
                self._told(message, len(frame.content))

    # --- requests --------------------------------------------------------------------------------

    def request(
        self,
        operation: Operation,
        payload: Payload | Json,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Pending:
        """Ask for something, now or as soon as there is a connection.

        Args:
            operation: What to do.
            payload: Its payload, as a model or a JSON object.
            run_id: The run, for the operations that are about one.
            expected_revision: The revision at which the resource must still be.
            key: The idempotency key; random when None. With the key of an earlier request its
                receipt is adopted.

        Returns:
            The pending request; `receive` gives it its reply.

        Raises:
            PayloadInvalid: The server would refuse it; nothing was sent.
            LimitExceeded: It does not fit a frame; nothing was sent.
            Unavailable: `versionMismatch`: the server is of another package version.
        """
        document = payload.document() if isinstance(payload, Payload) else payload
        read_payload(operation, document, run_id=run_id, expected_revision=expected_revision)
        if self._hello is not None and not self._may_ask(operation):
            raise self._version_refusal()
        members: dict[str, Json] = {
            "type": "request",
            "requestId": self._new_id("request"),
            "clientId": self._client_id,
            "operation": operation.value,
            "idempotencyKey": self._new_id("key") if key is None else key,
            "payload": document,
        }
        if run_id is not None:
            members["runId"] = run_id
        if expected_revision is not None:
            members["expectedRevision"] = expected_revision
        pending = Pending(Request.parse(members))
        self._send(pending)
        return pending

    def give_up(self, pending: Pending) -> None:
        """End a request without a reply.

        Its result is OutcomeUnknown when it may have changed something.
        """
        self._pending.pop(pending.request.request_id, None)
        if pending.result is not None:
            return
        pending.result = _unanswered(pending)
        if pending.subscription is not None:
            # The server may have begun what nobody listens to.
            self.unwatch(pending.subscription)

    def exhausted(self) -> None:
        """End everything: the server could not be reached again."""
        self._tell_all("reconnect_exhausted", _EXHAUSTED)
        for pending in tuple(self._pending.values()):
            self.give_up(pending)
        self._subscriptions.clear()

    # --- subscriptions ---------------------------------------------------------------------------

    def watch(
        self,
        run_id: str | None,
        *,
        revision: int | None = None,
        limit: int | None = None,
        is_mirrored: bool = False,
    ) -> tuple[Subscription, Pending]:
        """Subscribe to a run, or to the run list.

        Args:
            run_id: The run; None for the list.
            revision: The newest presentation revision that the caller has of the run.
            limit: How many runs the list shows.
            is_mirrored: Only `take_event` of this subscription gives its events.

        Returns:
            The subscription and its first request; a refusal of it ends the subscription.

        Raises:
            PayloadInvalid: The server would refuse it; nothing was sent.
            Unavailable: `versionMismatch`.
        """
        subscription = Subscription(
            self._new_id("subscription"), run_id, revision, limit, is_mirrored=is_mirrored
        )
        return subscription, self._begin(subscription)

    def watch_session(
        self,
        session_id: str,
        *,
        is_coordinator: bool = False,
        node_cursor: int | None = None,
        is_mirrored: bool = False,
    ) -> tuple[Subscription, Pending]:
        """Subscribe to what a Pi session works on.

        Args:
            session_id: The session.
            is_coordinator: Speak for the session on this connection and on each one after it, every
                time under a new epoch, which `Subscription.session` tells. A request in the
                session's name that a lost connection left unanswered is refused on the next one
                (`notCoordinator`): report the branch and ask again with the new epoch and the same
                key.
            node_cursor: The index of the first node shown; None follows the working node.
            is_mirrored: Only `take_event` of this subscription gives its events.

        It returns and raises as `watch` does.
        """
        watched = WatchedSession(session_id, is_coordinator, node_cursor)
        subscription = Subscription(
            self._new_id("subscription"), None, session=watched, is_mirrored=is_mirrored
        )
        return subscription, self._begin(subscription)

    def move(self, subscription: Subscription, node_cursor: int | None) -> Pending | None:
        """Show other nodes of a watched session, now and after each reconnection.

        Returns the request that tells the server, when it is connected.
        """
        assert subscription.session is not None, "a subscription without a session"
        subscription.session.node_cursor = node_cursor
        if not (self.is_ready and subscription.subscription_id in self._subscriptions):
            return None
        payload = ViewSessionWindow(
            subscription_id=subscription.subscription_id, node_cursor=node_cursor
        )
        return self.request(Operation.VIEW_SESSION_WINDOW, payload)

    def _begin(self, subscription: Subscription) -> Pending:
        """Ask for a new subscription."""
        pending = self.request(
            subscription.operation, subscription.payload(), run_id=subscription.run_id
        )
        pending.subscription = subscription
        self._subscriptions[subscription.subscription_id] = subscription
        return pending

    def unwatch(self, subscription: Subscription) -> Pending | None:
        """End a subscription.

        Returns:
            The request that tells the server, when it is connected and does not know.
        """
        is_known = self._subscriptions.pop(subscription.subscription_id, None) is not None
        self._telling.pop(subscription.subscription_id, None)
        for pending in tuple(self._pending.values()):
            if pending.subscription is subscription:
                pending.subscription = None
                self.give_up(pending)
        if not (is_known and self.is_ready):
            return None
        payload = ViewRunUnwatch(subscription_id=subscription.subscription_id)
        return self.request(Operation.VIEW_RUN_UNWATCH, payload)

    def restart(self, subscription: Subscription) -> None:
        """Ask for a snapshot of a run that is watched; the patches on the way are dropped."""
        subscription.revision = None
        subscription.awaits_snapshot = True
        subscription.backlog.clear()
        self._telling.pop(subscription.subscription_id, None)
        if self.is_ready and subscription.subscription_id in self._subscriptions:
            self._restore(subscription, None)

    def take_event(self, subscription: Subscription | None = None) -> Event | None:
        """Return the oldest event not yet taken.

        Args:
            subscription: Whose; of any that has no mirror when None.

        Returns:
            The event, or None. A whole view or list replaces what was told before it; patches come
            one by one.
        """
        if subscription is None:
            subscription = next((s for s in self._telling.values() if not s.is_mirrored), None)
        if subscription is None:
            return None
        event = subscription.backlog.take()
        self._telling.pop(subscription.subscription_id, None)
        if subscription.backlog:
            self._telling[subscription.subscription_id] = subscription
        if event is not None and event.event in _AT_REVISION:
            subscription.revision = event.revision
        return event

    # --- what came -------------------------------------------------------------------------------

    def _greeted(self, hello: Hello) -> None:
        """Send what is owed: subscriptions first, so that no news of a resent command is missed."""
        if self._hello is not None:
            raise ProtocolViolation("the server said hello twice", code="helloTwice")
        self._hello = hello
        owed = tuple(self._pending.values())
        self._pending.clear()
        if hello.package_version != self._package_version:
            self._tell_all("version_mismatch", self._version_refusal().message)
            self._subscriptions.clear()
        first: dict[str, Pending] = {}
        for pending in owed:
            if pending.subscription is not None:
                first.setdefault(pending.subscription.subscription_id, pending)
        for name, subscription in self._subscriptions.items():
            self._restore(subscription, first.get(name))
        for pending in owed:
            if not self._may_ask(pending.request.operation):
                pending.result = self._version_refusal()
            elif pending.subscription is None:
                self._resend(pending, pending.request.payload)

    def _answered(self, response: Response) -> None:
        """Give a request its reply; nobody waits for one of an abandoned request ID."""
        pending = self._pending.pop(response.request_id, None)
        if pending is None:
            return
        reply = Reply(response.outcome, response.revision, response.receipt, response.error)
        pending.result = reply
        subscription = pending.subscription
        if subscription is None:
            return
        if reply.is_done:
            subscription.is_begun = True
            subscription.coordinates(reply.receipt)
            return
        if subscription.is_begun:
            gone = reply.outcome is Outcome.NOT_FOUND
            reason: FailureReason = "run_removed" if gone else "projection_failed"
            self._tell(subscription, reason, reply.error or _REFUSED)
        self._subscriptions.pop(subscription.subscription_id, None)

    def _told(self, event: Event, size_bytes: int) -> None:
        """Keep an event of a subscription."""
        subscription = self._subscriptions.get(event.subscription_id)
        if subscription is None:
            return
        subscription.coordinates(event.payload)
        if event.event is EventKind.RUN_SNAPSHOT:
            subscription.awaits_snapshot = False
        elif event.event is EventKind.RUN_PATCH and subscription.awaits_snapshot:
            return
        if not subscription.backlog.put(event, size_bytes):
            self.restart(subscription)
            return
        self._telling.setdefault(event.subscription_id, subscription)
        if event.event is EventKind.UNAVAILABLE:
            del self._subscriptions[event.subscription_id]

    def _tell(self, subscription: Subscription, reason: FailureReason, message: str) -> None:
        """Give a subscription an event of our own."""
        failure = SubscriptionFailure(reason_code=reason, message=message)
        event = Event(
            subscription_id=subscription.subscription_id,
            event=EventKind.UNAVAILABLE,
            payload=failure.document(),
            run_id=subscription.run_id,
        )
        subscription.backlog.put(event)
        self._telling.setdefault(subscription.subscription_id, subscription)

    def _tell_all(self, reason: FailureReason, message: str) -> None:
        """Give every subscription that the server had accepted an event of our own."""
        for subscription in self._subscriptions.values():
            if subscription.is_begun:
                self._tell(subscription, reason, message)

    # --- what goes -------------------------------------------------------------------------------

    def _send(self, pending: Pending) -> None:
        """Put a request into what goes out, or keep it for the next connection."""
        data = envelope.encode(pending.request)
        self._pending[pending.request.request_id] = pending
        if self._hello is not None:
            pending.was_sent = True
            self._outgoing += data

    def _resend(self, pending: Pending, payload: Json) -> None:
        """Send a request again under a new ID and the same key."""
        fresh = {"request_id": self._new_id("request"), "payload": payload}
        pending.request = pending.request.model_copy(update=fresh)
        self._send(pending)

    def _restore(self, subscription: Subscription, first: Pending | None) -> None:
        """Begin a subscription on this connection.

        `first` is its first request while unanswered.
        """
        document = subscription.payload().document()
        if first is not None:
            self._resend(first, document)
            return
        pending = self.request(subscription.operation, document, run_id=subscription.run_id)
        pending.subscription = subscription

    def _may_ask(self, operation: Operation) -> bool:
        """Whether this server may be asked for it: one of another version for little."""
        return self.server_version == self._package_version or OPERATIONS[operation].any_version

    def _version_refusal(self) -> Unavailable:
        """Return what is asked of a person whose packages do not match."""
        return Unavailable(
            f"The server runs pi-workflows {self.server_version}, "
            f"this client {self._package_version}.",
            code="versionMismatch",
            hint="Install the same version for both, or stop the server: pi-workflows server stop",
        )


def _unanswered(pending: Pending) -> WorkflowsError:
    """Return why a request has no reply: harmless unless the server may have seen a change."""
    operation = pending.request.operation
    if pending.was_sent and OPERATIONS[operation].kind is not OperationClass.READ:
        return OutcomeUnknown(
            f"The reply to {operation} was lost and no server answered in time.",
            hint=f"Ask again with the same key: {pending.request.idempotency_key}",
        )
    return Unavailable(f"No server answered {operation}.", code="serverUnreachable")
