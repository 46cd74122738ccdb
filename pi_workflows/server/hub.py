"""News: which subscriptions have something new to tell, and nothing else.

A commit, or a process fact that changed, is news for subscriptions. A task tells their connections
in rounds: a few at a time, so that commands and their replies go on between them however many
watch. While the server has little time left and commands wait for one another, it rests after each
round, so that the changes of a while become one event. Each connection builds the newest event when
it can send one: a slow client delays nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import trio

from pi_workflows.base.errors import WorkflowsError
from pi_workflows.base.limits import (
    PUSH_LOADED_SHARE,
    PUSH_REST_FACTOR,
    PUSH_REST_MS_MAX,
    PUSH_REST_MS_MIN,
    SESSIONS_REMEMBERED_MAX,
    TOLD_AT_ONCE_MAX,
)
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.kernel.order import Answer
from pi_workflows.protocol.broadcast import Broadcast
from pi_workflows.server.loop_load import LoopLoad
from pi_workflows.views.session_view import SessionWork


class SessionWindow(NamedTuple):
    """What is watched of a session.

    Attributes:
        session_id: The session.
        node_cursor: The first node shown; None follows the working node.
    """

    session_id: str
    node_cursor: int | None


@dataclass(slots=True, eq=False)
class Subscription:
    """What one connection wants to know.

    Attributes:
        subscription_id: The client's name for it.
        run_id: The run that is watched; None for a session or the run list.
        connection_id: Whose it is.
        tell: Called, without blocking, when there is something to tell.
        limit: How many runs a list shows; None is the default.
        revision: The presentation revision that the client has; None when it has none.
        window: The session that is watched; None for a run or the run list.
        is_dirty: Whether its connection was told of a change and has built no event since; true at
            first.
        sent_total: Events built so far.
    """

    subscription_id: str
    run_id: str | None
    connection_id: str
    tell: Callable[[], None]
    limit: int | None = None
    revision: int | None = None
    window: SessionWindow | None = None
    is_dirty: bool = True
    sent_total: int = 0


@dataclass(slots=True, eq=False)
class _Shared:
    """A run as it is since its last change, for everybody who watches it.

    Attributes:
        view: The whole of it.
        patches: What changed since a revision; None where that cannot be told.
    """

    view: Broadcast | None = None
    patches: dict[int, Broadcast | None] = field(default_factory=dict[int, Broadcast | None])


class Hub:
    """Every subscription of every connection, and what they share of the state as it is now.

    Args:
        session_of: Reads which session a run reserves; None when it reserves none.
    """

    def __init__(self, session_of: Callable[[str], str | None]) -> None:
        self._by_run: dict[str, set[Subscription]] = {}
        self._by_session: dict[str, set[Subscription]] = {}
        self._lists: set[Subscription] = set()
        self._shared: dict[str, _Shared] = {}
        self._work: dict[str, SessionWork] = {}
        self._session_of = session_of
        self._sessions: dict[str, str | None] = {}
        # Those to be told, each once, who waits longest first.
        self._news: dict[Subscription, None] = {}
        self._has_news = trio.Event()
        # Whether commands had to wait for one another since the last round.
        self._is_crowded = False

    async def run(self) -> None:
        """Tell connections that there is something new, until cancelled."""
        load = LoopLoad()
        trio.lowlevel.add_instrument(load)
        try:
            while True:
                await self._has_news.wait()
                # What a commit also wakes goes first: the reply to the command.
                await trio.lowlevel.checkpoint()
                self._has_news = trio.Event()
                spent = await self._tell_round()
                share, is_crowded, self._is_crowded = load.share(), self._is_crowded, False
                # One client at a time, on a machine that is slow, gains nothing by a rest.
                if is_crowded and share > PUSH_LOADED_SHARE:
                    rest_ms = max(PUSH_REST_MS_MIN, PUSH_REST_FACTOR * spent * MS_PER_SECOND)
                    await trio.sleep(min(rest_ms, PUSH_REST_MS_MAX) / MS_PER_SECOND)
        finally:
            trio.lowlevel.remove_instrument(load)

    async def _tell_round(self) -> float:
        """Tell as many as have news now; what comes meanwhile is for another round.

        Returns:
            The seconds that this took, without what went on in between.
        """
        left = len(self._news)
        spent = 0.0
        while left > 0 and self._news:
            began = trio.current_time()
            told = tuple(islice(self._news, min(left, TOLD_AT_ONCE_MAX)))
            for subscription in told:
                self.forget(subscription)
                subscription.is_dirty = True
                subscription.tell()
            left -= len(told)
            spent += trio.current_time() - began
            await trio.lowlevel.checkpoint()
        return spent

    def forget(self, subscription: Subscription) -> None:
        """Forget the news of a subscription: its newest event is built, or nobody hears it."""
        self._news.pop(subscription, None)

    @property
    def subscription_count(self) -> int:
        """How many subscriptions there are."""
        watchers = (*self._by_run.values(), *self._by_session.values())
        return len(self._lists) + sum(map(len, watchers))

    def view(self, run_id: str, build: Callable[[], Broadcast]) -> Broadcast:
        """Return the view of a watched run, built once for everybody who begins with it.

        Args:
            run_id: The run.
            build: Builds the event of the view as it is now.

        Returns:
            The view since the last change of the run.
        """
        shared = self._shared_of(run_id)
        if shared.view is None:
            shared.view = build()
        return shared.view

    def patch(
        self, run_id: str, from_revision: int, build: Callable[[], Broadcast | None]
    ) -> Broadcast | None:
        """Return what changed since a revision, built once for everybody who has that one.

        Args:
            run_id: The run.
            from_revision: The presentation revision that they have.
            build: Builds the event of the patch; None when there is none.

        Returns:
            The patch to the run as it is since its last change.
        """
        patches = self._shared_of(run_id).patches
        if from_revision not in patches:
            patches[from_revision] = build()
        return patches[from_revision]

    def work(self, session_id: str, build: Callable[[], SessionWork]) -> SessionWork:
        """Return the work of a session around its working node, built once for its watchers.

        Args:
            session_id: A session that is watched.
            build: Builds it as it is now.

        Returns:
            The work since the last change of the session's runs.
        """
        if session_id not in self._work:
            self._work[session_id] = build()
        return self._work[session_id]

    def _shared_of(self, run_id: str) -> _Shared:
        """Return what the watchers of a run share; of a run that nobody watches nothing is kept."""
        if run_id in self._by_run:
            return self._shared.setdefault(run_id, _Shared())
        return _Shared()

    def add(self, subscription: Subscription) -> None:
        """Begin to tell a subscription; it starts dirty, as its first event is the state now."""
        if subscription.window is not None:
            session_id = subscription.window.session_id
            self._by_session.setdefault(session_id, set()).add(subscription)
        elif subscription.run_id is not None:
            self._by_run.setdefault(subscription.run_id, set()).add(subscription)
        else:
            self._lists.add(subscription)
        self._announce((subscription,))

    def remove(self, subscription: Subscription) -> None:
        """End a subscription; one that is not there is ignored."""
        self._lists.discard(subscription)
        self.forget(subscription)
        if subscription.window is not None:
            session_id = subscription.window.session_id
            if _discarded(self._by_session, session_id, subscription):
                self._work.pop(session_id, None)
        elif subscription.run_id is not None and _discarded(
            self._by_run, subscription.run_id, subscription
        ):
            self._shared.pop(subscription.run_id, None)

    def observe(self, answers: Sequence[Answer]) -> None:
        """Note what a group of commands changed. The writer calls it after COMMIT."""
        self._is_crowded = self._is_crowded or len(answers) > 1
        changed = {run_id for answer in answers for run_id in answer.views}
        if changed:
            self._mark(changed)

    def process_changed(self, run_id: str) -> None:
        """Mark a run whose process began or ended: its display differs without a commit."""
        self._mark((run_id,))

    def session_changed(self, session_id: str) -> None:
        """Mark the watchers of a session whose coordinator is another one, or reported.

        What such a report says is part of how its run is shown.
        """
        self._work.pop(session_id, None)
        self._announce(self._by_session.get(session_id, ()))

    def _mark(self, run_ids: Iterable[str]) -> None:
        """Mark the watchers of these runs, of their sessions, and of the list that shows them."""
        for run_id in run_ids:
            self._shared.pop(run_id, None)
            self._announce(self._by_run.get(run_id, ()))
            if self._by_session:
                self._mark_session(run_id)
        self._announce(self._lists)

    def _mark_session(self, run_id: str) -> None:
        """Mark the watchers of the session that a run reserves."""
        if run_id not in self._sessions:
            if len(self._sessions) >= SESSIONS_REMEMBERED_MAX:
                self._sessions.clear()
            try:
                self._sessions[run_id] = self._session_of(run_id)
            except WorkflowsError:
                # Whose it is cannot be told now: everybody looks, and hears what there is to hear.
                self._work.clear()
                for watchers in self._by_session.values():
                    self._announce(watchers)
                return
        session_id = self._sessions[run_id]
        if session_id is not None:
            self._work.pop(session_id, None)
            self._announce(self._by_session.get(session_id, ()))

    def _announce(self, watchers: Iterable[Subscription]) -> None:
        """Note news for subscriptions, whose connections are told soon."""
        for subscription in watchers:
            self._news[subscription] = None
            self._has_news.set()


def _discarded(
    watchers: dict[str, set[Subscription]], key: str, subscription: Subscription
) -> bool:
    """Take a subscription out of those under a key. Returns whether nobody is left there."""
    found = watchers.get(key, set())
    found.discard(subscription)
    if found:
        return False
    watchers.pop(key, None)
    return True
