"""Mirrors kept current by their subscriptions, without a socket.

What a mirror needs beyond the events that come is asked for here: a snapshot after a fault, the
pages of the run list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from pi_workflows.base.errors import Unavailable
from pi_workflows.base.limits import RUN_LIST_DEFAULT
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.connection import ClientState, Pending
from pi_workflows.protocol.list_mirror import RunListMirror
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.session_mirror import SessionMirror
from pi_workflows.protocol.subscription import Subscription
from pi_workflows.protocol.views import SubscriptionFailure, ViewRunsPage

Mirror: TypeAlias = RunMirror | RunListMirror | SessionMirror
"""What a subscription keeps current."""

MirrorT = TypeVar("MirrorT", bound=Mirror)
MirrorT_co = TypeVar("MirrorT_co", bound=Mirror, covariant=True)

_NOTHING: Final = Change()
# A server whose snapshots are at fault this often gives no good one.
_RESTARTS_MAX: Final = 2


@dataclass(slots=True, eq=False)
class Watch(Generic[MirrorT_co]):
    """A mirror and the subscription that keeps it current.

    Attributes:
        subscription: What tells the news.
        mirror: What they come to.
        restarts: Snapshots asked for since the mirror was good.
        page: The request for a page of the list that is on its way, and what it asks.
    """

    subscription: Subscription
    mirror: MirrorT_co
    restarts: int = 0
    page: tuple[ViewRunsPage, Pending] | None = None


AnyWatch: TypeAlias = Watch[Mirror]
"""A watch of a run, of a session or of the run list."""


class News(NamedTuple):
    """A change, and whose."""

    watch: AnyWatch
    change: Change


class Watching:
    """The watches of one client.

    Args:
        state: The client's state; its shell sends what is asked for here.
    """

    def __init__(self, state: ClientState) -> None:
        """Begin without a watch."""
        self._state = state
        # The one that told something last stands at the end.
        self._watches: dict[str, AnyWatch] = {}

    def run(self, run_id: str) -> tuple[Watch[RunMirror], Pending]:
        """Mirror a run.

        Args:
            run_id: The run.

        Returns:
            The watch and its first request; after a refusal `end` it.

        Raises:
            PayloadInvalid: The server would refuse it; nothing was sent.
            Unavailable: `versionMismatch`.
        """
        subscription, pending = self._state.watch(run_id, is_mirrored=True)
        watch = Watch(subscription, RunMirror(run_id))
        self._watches[subscription.subscription_id] = watch
        return watch, pending

    def run_list(
        self, limit: int | None = RUN_LIST_DEFAULT
    ) -> tuple[Watch[RunListMirror], Pending]:
        """Mirror the run list.

        Args:
            limit: How many of the newest runs; every run when None.

        Returns:
            As `run`.

        Raises:
            As `run`.
        """
        mirror = RunListMirror(limit)
        subscription, pending = self._state.watch(None, limit=mirror.page_limit, is_mirrored=True)
        watch = Watch(subscription, mirror)
        self._watches[subscription.subscription_id] = watch
        return watch, pending

    def session(
        self, session_id: str, *, is_coordinator: bool = False, node_cursor: int | None = None
    ) -> tuple[Watch[SessionMirror], Pending]:
        """Mirror what a Pi session works on.

        Args:
            session_id: The session.
            is_coordinator: As `ClientState.watch_session`.
            node_cursor: The index of the first node shown; None follows the working node.

        Returns:
            As `run`.

        Raises:
            As `run`.
        """
        subscription, pending = self._state.watch_session(
            session_id, is_coordinator=is_coordinator, node_cursor=node_cursor, is_mirrored=True
        )
        watch = Watch(subscription, SessionMirror(session_id))
        self._watches[subscription.subscription_id] = watch
        return watch, pending

    def end(self, watch: AnyWatch) -> Pending | None:
        """End a watch; its mirror stays as it is.

        Returns:
            The request that tells the server, when it is connected and does not know.
        """
        if self._watches.pop(watch.subscription.subscription_id, None) is None:
            return None
        return self._state.unwatch(watch.subscription)

    def take(self, watch: AnyWatch | None = None) -> News | None:
        """Let a mirror take all of its news.

        Args:
            watch: Whose; of any when None.

        Returns:
            What changed, or None. After a change that is an end the watch is over.
        """
        for name, each in tuple(self._watches.items()):
            if watch not in (None, each):
                continue
            change = self._advance(each)
            if change != _NOTHING:
                del self._watches[name]
                if not change.is_end:
                    self._watches[name] = each
                return News(each, change)
        return None

    def _advance(self, watch: AnyWatch) -> Change:
        """Let a mirror take its events, and ask for what it needs then."""
        change = _NOTHING
        while (event := self._state.take_event(watch.subscription)) is not None:
            taken = watch.mirror.take(event)
            change = change.then(taken)
            if taken.is_snapshot:
                watch.restarts = 0
        if isinstance(watch.mirror, SessionMirror):
            return change
        if isinstance(watch.mirror, RunListMirror):
            return change.then(self._collect(watch, watch.mirror))
        return change.then(self._keep_up(watch, watch.mirror))

    def _keep_up(self, watch: AnyWatch, mirror: RunMirror) -> Change:
        """Restore a run from what its mirror has, or ask for a snapshot when it needs one."""
        subscription = watch.subscription
        if not mirror.needs_watch:
            subscription.revision = mirror.revision
        elif not subscription.awaits_snapshot:
            if watch.restarts == _RESTARTS_MAX:
                self._state.unwatch(subscription)
                message = "The server sends nothing that can be shown."
                return Change(
                    failure=SubscriptionFailure(reason_code="projection_failed", message=message)
                )
            watch.restarts += 1
            self._state.restart(subscription)
        return _NOTHING

    def _collect(self, watch: AnyWatch, mirror: RunListMirror) -> Change:
        """Take the page that came, and ask for the next one."""
        change = _NOTHING
        if watch.page is not None:
            asked, pending = watch.page
            if pending.result is None:
                return change
            watch.page = None
            if isinstance(pending.result, Reply):
                change = mirror.take_page(asked, pending.result)
            else:
                mirror.give_up()
        wanted = mirror.wanted
        if wanted is not None:
            try:
                watch.page = wanted, self._state.request(Operation.VIEW_RUNS_PAGE, wanted)
            except Unavailable:
                # Another version came back: its subscriptions say so.
                mirror.give_up()
        return change
