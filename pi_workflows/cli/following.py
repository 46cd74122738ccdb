"""Following runs by the numbers of their events, across lost connections and server restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock, SystemClock
from pi_workflows.base.errors import NotFound, Unavailable
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.cli.connection import ask
from pi_workflows.cli.content import whole
from pi_workflows.cli.outcome import DEADLINE, FAILED, Outcome, outcome_of
from pi_workflows.cli.run_view import Node, RunView, TraceItem, Workflow
from pi_workflows.cli.trace_pages import errors_of, trace_after
from pi_workflows.client.blocking import Client
from pi_workflows.client.feed import Feed
from pi_workflows.protocol.list_mirror import RunListMirror
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import SubscriptionFailure
from pi_workflows.protocol.watching import News

Detail: TypeAlias = Literal["events", "lines", "picture", "whole"]
"""What is shown of a run: its events alone; each with why it failed; its graph; or all of its view.
"""

_BAD_ENDS: Final = frozenset({"failed", "timed_out"})


@dataclass(slots=True, eq=False)
class Followed:
    """One run that is followed.

    Attributes:
        run_id: The run.
        seq: The number of the newest event that was told.
        view: The run as it stood last; None before the first view.
        outcome: What it came to; of a run that stands still it may change again.
        stale_below: Views of an older revision of the run were on their way when something was
            changed that they do not show; they are dropped.
        errors: Why attempts failed whose end is being told, where lines are shown.
        explained: The failed attempts whose errors the view has.
        tries: Settled attempts of the current visit of each node, for its retries.
        nodes: All nodes of a definition that its view shows a part of, once they were asked for.
    """

    run_id: str
    seq: int = 0
    view: RunView | None = None
    outcome: Outcome | None = None
    feed: Feed[RunMirror] | None = None
    stale_below: int = 0
    errors: dict[str, Json] = field(default_factory=dict[str, Json])
    explained: frozenset[str] = frozenset()
    tries: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    nodes: Mapping[str, Node] | None = None
    is_told: bool = False


class Listener(Protocol):
    """Who is told what happens. Every call comes from inside `Follower.follow`."""

    @property
    def frame_ms(self) -> int | None:
        """How often it wants `moved` while nothing happens; None not at all."""
        ...

    @property
    def detail(self) -> Detail:
        """How much it shows: parts of a view that nobody sees may be older than the rest."""
        ...

    def changed(self, run: Followed, item: TraceItem) -> None:
        """One event of a run; the view is at least as new."""
        ...

    def seen(self, run: Followed) -> None:
        """A new view of a run; its events have been told."""
        ...

    def lost(self, run: Followed) -> None:
        """The server is gone; what is shown may be old until `seen` is called again."""
        ...

    def moved(self) -> None:
        """Time went by."""
        ...

    def ended(self, run: Followed, outcome: Outcome, *, is_last: bool) -> None:
        """A run is followed no longer; told once for each run."""
        ...


class Follower:
    """Follows runs until each of them ended or stands still.

    Args:
        server: The connected client.
        run_ids: Whole IDs, each once.
        listener: Who is told.
        from_seq: Only events above this number are told.
        deadline_ms: How long to follow; None without end.
        waits_for_runs: A run that does not exist is waited for.
        until_end: A run that stands still is followed on.
        fail_fast: The first failed node or run ends everything.
        clock: Measures the deadline.
    """

    def __init__(
        self,
        server: Client,
        run_ids: Sequence[str],
        listener: Listener,
        *,
        from_seq: int = 0,
        deadline_ms: int | None = None,
        waits_for_runs: bool = False,
        until_end: bool = False,
        fail_fast: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._server = server
        self._listener = listener
        self._waits_for_runs = waits_for_runs
        self._until_end = until_end
        self._fail_fast = fail_fast
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._until_ms = None if deadline_ms is None else self._now_ms() + deadline_ms
        self._list: Feed[RunListMirror] | None = None
        self.runs = tuple(Followed(run_id, from_seq) for run_id in run_ids)

    def follow(self) -> int:
        """Follow until every run ended, stands still, or time is up.

        May be called again to go on with a run that stood still.

        Returns:
            The highest exit code of the runs.

        Raises:
            NotFound: A run does not exist and is not waited for.
            Unavailable: The server is gone for good.
        """
        for run in self.runs:
            if not (run.outcome is not None and run.outcome.is_end):
                run.outcome, run.is_told = None, False
                self._watch(run)
        while any(run.outcome is None for run in self.runs):
            left_ms = None if self._until_ms is None else self._until_ms - self._now_ms()
            if left_ms is not None and left_ms <= 0:
                self._give_up(Outcome("deadline", DEADLINE))
                break
            news = self._server.next_news(timeout_ms=self._patience_ms(left_ms))
            if news is not None:
                self._take(news)
            self._listener.moved()
        self._tell_rest()
        return max(run.outcome.exit_code for run in self.runs if run.outcome is not None)

    def _patience_ms(self, left_ms: int | None) -> int | None:
        """Return how long to wait for the next event."""
        frame_ms = self._listener.frame_ms
        if left_ms is None or frame_ms is None:
            return left_ms if frame_ms is None else frame_ms
        return min(frame_ms, left_ms)

    # --- subscriptions ---------------------------------------------------------------------------

    def _watch(self, run: Followed) -> None:
        """Subscribe to a run, or to the list while the run does not exist."""
        if run.feed is not None:
            return
        feed = self._server.watch_run(run.run_id)
        try:
            feed.open()
        except NotFound:
            if not self._waits_for_runs:
                raise
            if self._list is None:
                # Its first event comes at once: a run that was made meanwhile is not missed.
                self._list = self._server.watch_list(1)
                self._list.open()
        else:
            run.feed = feed

    def _take(self, news: News) -> None:
        """Take what is new of one run, or of the list."""
        failure = news.change.failure
        if self._list is not None and news.watch is self._list.watch:
            self._look_for_missing(failure)
            return
        for run in self.runs:
            if run.feed is not None and run.feed.watch is news.watch:
                if failure is not None:
                    self._unavailable(run, failure)
                elif not run.feed.mirror.is_stale:
                    self._see(run, self._view_of(run, run.feed.mirror))

    def whole(self, run: Followed) -> RunView | None:
        """Return a run's view with every part up to date, as far as the server is there.

        Raises:
            NotFound: The run is gone.
            Unavailable: As `Client.request`.
        """
        if run.feed is not None and run.feed.mirror.stale and not run.feed.mirror.is_stale:
            self._fetch(run.feed.mirror)
            run.view = RunView.parse(run.feed.mirror.view)
        return run.view

    def _view_of(self, run: Followed, mirror: RunMirror) -> RunView:
        """Return the view of a run; what is shown of it is as new as the rest."""
        view = RunView.parse(mirror.view)
        if self._shows_old(run, view, mirror):
            self._fetch(mirror)
            view = RunView.parse(mirror.view)
        if "aggregates" not in mirror.stale:
            run.explained = view.failed_attempts
        return view

    def _shows_old(self, run: Followed, view: RunView, mirror: RunMirror) -> bool:
        """Whether something is shown of which the view has an older state."""
        match self._listener.detail:
            case "events" | "lines":
                return False
            case "whole":
                return bool(mirror.stale)
            case "picture":
                is_unexplained = not view.failed_attempts <= run.explained
                is_moved = not mirror.stale.isdisjoint({"trace", "definition"})
                return is_moved or ("aggregates" in mirror.stale and is_unexplained)

    def _fetch(self, mirror: RunMirror) -> None:
        """Bring every part of a view up to date."""
        reply = ask(self._server, Operation.VIEW_RUN_GET, {}, run_id=mirror.run_id)
        mirror.take_view(reply.receipt)

    def _look_for_missing(self, failure: SubscriptionFailure | None) -> None:
        """The run list changed: one that is waited for may be there now."""
        if failure is not None:
            if failure.reason_code != "connection_lost":
                raise Unavailable(failure.message, code="serverUnreachable")
            return
        missing = [run for run in self.runs if run.feed is None and run.outcome is None]
        for run in missing:
            self._watch(run)
        if self._list is not None and all(run.feed is not None for run in missing):
            self._list.close()
            self._list = None

    def _unavailable(self, run: Followed, failure: SubscriptionFailure) -> None:
        """A subscription tells nothing, for now or for good."""
        match failure.reason_code:
            case "connection_lost":
                self._listener.lost(run)
            case "run_removed":
                run.outcome = Outcome("removed", FAILED, is_end=True)
                self._tell(run)
            case "version_mismatch":
                raise Unavailable(failure.message, code="versionMismatch")
            case _:
                raise Unavailable(failure.message, code="serverUnreachable")

    # --- one run ---------------------------------------------------------------------------------

    def _see(self, run: Followed, view: RunView) -> None:
        """Take a new view: tell its events, then where the run stands."""
        if run.is_told or view.run_revision < run.stale_below:
            return
        run.view = view
        has_failed = False
        while run.seq < view.state.trace_seq:
            items = tuple(trace_after(self._server, view, run.seq))
            if self._listener.detail == "lines":
                run.errors = errors_of(self._server, run.run_id, items)
            for item in items:
                run.seq = item.seq
                self._listener.changed(run, item)
                has_failed |= self._is_failed_node(run, item)
        self._listener.seen(run)
        run.outcome = self._outcome(view)
        if self._fail_fast and (has_failed or view.display.status in _BAD_ENDS):
            self._stop_at(run, view)
        elif run.outcome is not None and run.outcome.is_end:
            self._tell(run)

    def _outcome(self, view: RunView) -> Outcome | None:
        """Return what a run came to, as far as this follower is concerned."""
        outcome = outcome_of(view)
        return None if outcome is not None and self._until_end and not outcome.is_end else outcome

    def _is_failed_node(self, run: Followed, item: TraceItem) -> bool:
        """Whether an event is the end of a visit that failed and is not tried again."""
        if item.node_id is None or run.view is None:
            return False
        if item.type == "attempt.started":
            visit = item.payload.get("visit")
            number = visit if isinstance(visit, int) else 0
            before, count = run.tries.get(item.node_id, (number, 0))
            run.tries[item.node_id] = (number, count + 1 if before == number else 1)
            return False
        outcome = item.payload.get("outcome")
        if item.type != "attempt.settled" or outcome not in _BAD_ENDS:
            return False
        node = self._nodes(run, run.view).get(item.node_id)
        retry = node.retry if node is not None else None
        tries = run.tries.get(item.node_id, (0, 1))[1]
        return retry is None or outcome not in retry.on or tries >= retry.max_attempts

    def _nodes(self, run: Followed, view: RunView) -> Mapping[str, Node]:
        """Return all nodes of a run, of which the view of a large definition has some."""
        if view.workflow.node_total is None:
            return view.workflow.nodes
        if run.nodes is None:
            document = whole(self._server, run.run_id, view.workflow.content)
            run.nodes = Workflow.parse(document).nodes
        return run.nodes

    # --- the end ---------------------------------------------------------------------------------

    def _stop_at(self, failed: Followed, view: RunView) -> None:
        """End everything at the first failure: the others go on unseen."""
        if failed.outcome is None or failed.outcome.exit_code == 0:
            failed.outcome = Outcome(view.display.status, FAILED)
        self._tell(failed)
        for run in self.runs:
            if run.outcome is None:
                name = run.view.display.status if run.view is not None else "unknown"
                run.outcome = Outcome(name, 0)

    def _give_up(self, outcome: Outcome) -> None:
        """Give every run that goes on the same end."""
        for run in self.runs:
            if run.outcome is None:
                run.outcome = outcome

    def _tell_rest(self) -> None:
        """Tell the end of every run whose end was not told yet."""
        for run in self.runs:
            self._tell(run)

    def _tell(self, run: Followed) -> None:
        """Tell that a run is followed no longer."""
        if run.is_told or run.outcome is None:
            return
        run.is_told = True
        is_last = all(other.is_told for other in self.runs)
        self._listener.ended(run, run.outcome, is_last=is_last)

    def _now_ms(self) -> int:
        """Return the monotonic time."""
        return self._clock.monotonic_ns() // NS_PER_MS
