"""One subscription of a client: how it is begun and restored, and what it told that nobody took."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import CLIENT_BACKLOG_BYTES_MAX
from pi_workflows.protocol.coordination import ViewSessionWatch
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import ViewRunsWatch, ViewRunWatch
from pi_workflows.protocol.wire import Payload


class Backlog:
    """What was told and not taken: the newest whole event and the patches after it, in order."""

    def __init__(self) -> None:
        """Begin empty."""
        self._events: deque[tuple[Event, int]] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        """Whether there is something to take."""
        return bool(self._events)

    def put(self, event: Event, size_bytes: int = 0) -> bool:
        """Keep an event; a whole one replaces what was there.

        Args:
            event: What came.
            size_bytes: The bytes of its frame.

        Returns:
            False when patches take too much room: then nothing is kept any more.
        """
        if event.event is not EventKind.RUN_PATCH:
            self.clear()
        elif self._bytes + size_bytes > CLIENT_BACKLOG_BYTES_MAX:
            self.clear()
            return False
        self._events.append((event, size_bytes))
        self._bytes += size_bytes
        return True

    def take(self) -> Event | None:
        """Return the oldest event, once."""
        if not self._events:
            return None
        event, size_bytes = self._events.popleft()
        self._bytes -= size_bytes
        return event

    def clear(self) -> None:
        """Forget everything."""
        self._events.clear()
        self._bytes = 0


@dataclass(slots=True, eq=False)
class WatchedSession:
    """The session that a subscription is about.

    Attributes:
        session_id: The session.
        is_coordinator: Whether each connection asks to coordinate it.
        node_cursor: The index of the first node shown; None follows the working node.
        epoch: The epoch under which this connection coordinates it; None when it does not, or when
            another one does since.
    """

    session_id: str
    is_coordinator: bool = False
    node_cursor: int | None = None
    epoch: int | None = None


@dataclass(slots=True, eq=False)
class Subscription:
    """News of one run, of one session, or of the run list when both are None.

    Attributes:
        subscription_id: The same through all connections.
        run_id: The run that is watched.
        revision: The presentation revision from which it is restored: of the newest event that was
            taken, or what a mirror made of it; None asks for a snapshot.
        limit: How many runs a list shows.
        session: The session that is watched.
        is_mirrored: A mirror takes its events; nobody else is offered them.
        is_begun: Whether the server has accepted it once.
        awaits_snapshot: Patches are of no use before the next snapshot.
        backlog: What nobody has taken yet.
    """

    subscription_id: str
    run_id: str | None
    revision: int | None = None
    limit: int | None = None
    session: WatchedSession | None = None
    is_mirrored: bool = False
    is_begun: bool = False
    awaits_snapshot: bool = False
    backlog: Backlog = field(default_factory=Backlog)

    @property
    def operation(self) -> Operation:
        """The operation that begins it."""
        if self.session is not None:
            return Operation.VIEW_SESSION_WATCH
        return Operation.VIEW_RUNS_WATCH if self.run_id is None else Operation.VIEW_RUN_WATCH

    def payload(self) -> Payload:
        """Return what begins it, or restores it from the newest revision that was taken."""
        if self.session is not None:
            return ViewSessionWatch(
                subscription_id=self.subscription_id,
                session_id=self.session.session_id,
                coordinator=self.session.is_coordinator or None,
                node_cursor=self.session.node_cursor,
            )
        if self.run_id is None:
            return ViewRunsWatch(subscription_id=self.subscription_id, limit=self.limit)
        return ViewRunWatch(subscription_id=self.subscription_id, revision=self.revision)

    def coordinates(self, document: Json) -> None:
        """Take from a receipt or a session view under which epoch the connection coordinates."""
        if self.session is None:
            return
        epoch = None
        if isinstance(document, dict) and document.get("coordinatorActive", True):
            epoch = document.get("coordinatorEpoch")
        self.session.epoch = epoch if type(epoch) is int else None
