"""Mirrors and their subscriptions: what is asked for, and from where they are restored."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol import envelope
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.connection import ClientState
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.list_mirror import RunListMirror
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import RunListPage
from pi_workflows.protocol.watching import AnyWatch, News, Watch, Watching
from tests.protocol import run_news
from tests.protocol.conversation import answer, greet, ready, sent, tell
from tests.protocol.run_news import RUN, delta, patch, run_view, snapshot


def _watched() -> tuple[ClientState, Watching, Watch[RunMirror]]:
    """Return a client that mirrors a run."""
    state = ready()
    watching = Watching(state)
    watch, _ = watching.run(RUN)
    [request] = sent(state)
    assert request.operation is Operation.VIEW_RUN_WATCH
    answer(state, request)
    return state, watching, watch


def _tell(state: ClientState, watch: AnyWatch, *events: Event) -> None:
    """Send events of a watch."""
    name = {"subscription_id": watch.subscription.subscription_id}
    for event in events:
        state.receive(envelope.encode(event.model_copy(update=name)))


def _small(revision: int) -> Event:
    """Return a patch to a revision from the one before."""
    return patch(revision - 1, revision, delta(revision, "summary/", ("add", "/queue", revision)))


def _news(watching: Watching, watch: AnyWatch | None = None) -> Change:
    """Return the change that there is."""
    news = watching.take(watch)
    assert news is not None
    return news.change


def test_everything_that_came_is_one_change() -> None:
    """A mirror takes all its news at once, and nobody else is offered them."""
    state, watching, watch = _watched()
    assert watching.take() is None
    _tell(state, watch, snapshot(4), _small(5), _small(6))
    assert state.take_event() is None
    news = watching.take()
    assert news == News(watch, Change(is_snapshot=True, is_display=True, targets={"summary/": 6}))
    assert (watch.mirror.revision, watch.subscription.revision) == (6, 6)
    assert watching.take() is None
    assert sent(state) == []


def test_a_mirror_is_restored_from_what_it_applied() -> None:
    """The next connection begins at the revision of the view, and the view is old until then."""
    state, watching, watch = _watched()
    _tell(state, watch, snapshot(4), _small(5))
    _news(watching)
    _tell(state, watch, _small(6))  # never taken
    state.disconnected()
    change = _news(watching)
    assert change.failure is not None
    assert not change.is_end
    assert (watch.mirror.is_stale, watch.mirror.revision) == (True, 5)
    greet(state)
    [again] = sent(state)
    name = watch.subscription.subscription_id
    assert again.payload == {"subscriptionId": name, "revision": 5}
    answer(state, again)
    _tell(state, watch, _small(6))
    assert _news(watching) == Change(targets={"summary/": 6}, is_restored=True)
    assert not watch.mirror.is_stale


def test_what_a_mirror_did_not_apply_is_not_what_it_is_restored_from() -> None:
    """A repeated patch leads nowhere, and a view that was fetched leads on."""
    state, watching, watch = _watched()
    _tell(state, watch, snapshot(6), _small(5))
    _news(watching)
    assert watch.subscription.revision == 6
    watch.mirror.take_view(run_view(8))
    watching.take()
    assert watch.subscription.revision == 8


def test_a_mirror_that_needs_a_snapshot_asks_for_one() -> None:
    """After a fault the run is watched again without a revision, once; patches wait for that."""
    state, watching, watch = _watched()
    _tell(state, watch, snapshot(4), _small(7))
    assert _news(watching).fault == "revisionGap"
    [again] = sent(state)
    assert again.operation is Operation.VIEW_RUN_WATCH
    assert again.payload == {"subscriptionId": watch.subscription.subscription_id}
    _tell(state, watch, _small(8))
    assert watching.take() is None
    assert sent(state) == []
    answer(state, again)
    _tell(state, watch, snapshot(8), _small(9))
    assert _news(watching) == Change(is_snapshot=True, is_display=True, targets={"summary/": 9})
    assert (watch.mirror.is_stale, watch.subscription.revision) == (False, 9)


def test_a_snapshot_that_is_needed_is_asked_for_on_the_next_connection_too() -> None:
    """A connection that is lost meanwhile changes nothing about it."""
    state, watching, watch = _watched()
    _tell(state, watch, snapshot(4), _small(7))
    _news(watching)
    state.disconnected()
    _news(watching)
    greet(state)
    [again] = sent(state)
    assert again.payload == {"subscriptionId": watch.subscription.subscription_id}


def test_a_server_without_a_good_snapshot_is_given_up() -> None:
    """Snapshots at fault are asked for again twice; then the watch ends and says so."""
    state, watching, watch = _watched()
    bad = snapshot(4).model_copy(update={"payload": {**run_view(4), "runId": "other"}})
    for _ in range(2):
        _tell(state, watch, bad)
        assert _news(watching).fault == "wrongRun"
        [again] = sent(state)
        answer(state, again)
    _tell(state, watch, bad)
    change = _news(watching)
    assert change.is_end
    assert change.failure is not None
    assert change.failure.reason_code == "projection_failed"
    assert [request.operation for request in sent(state)] == [Operation.VIEW_RUN_UNWATCH]
    _tell(state, watch, snapshot(5))
    assert (watching.take(), watching.take(watch)) == (None, None)


def test_faults_that_snapshots_repair_never_end_a_watch() -> None:
    """Only snapshots at fault count."""
    state, watching, watch = _watched()
    for revision in range(10, 50, 10):
        _tell(state, watch, snapshot(revision), _small(revision + 5))
        assert not _news(watching).is_end
        [again] = sent(state)
        answer(state, again)


def test_a_run_that_is_gone_ends_its_watch() -> None:
    """The last change says so, and the view stays."""
    state, watching, watch = _watched()
    _tell(state, watch, snapshot(4), run_news.unavailable("run_removed"))
    change = _news(watching, watch)
    assert change.is_end
    assert watch.mirror.view is None
    assert watching.end(watch) is None
    assert state.is_idle


def test_a_watch_is_ended() -> None:
    """The server is told once, and nothing comes of news on their way."""
    state, watching, watch = _watched()
    _tell(state, watch, snapshot(4))
    assert watching.end(watch) is not None
    assert [request.operation for request in sent(state)] == [Operation.VIEW_RUN_UNWATCH]
    assert watching.end(watch) is None
    _tell(state, watch, snapshot(5))
    assert (watching.take(), watching.take(watch)) == (None, None)


def test_the_watch_that_told_something_last_waits_for_the_others() -> None:
    """A run that changes all the time leaves room for the rest, and for other subscriptions."""
    state, watching, first = _watched()
    second, _ = watching.run(RUN)
    plain, _ = state.watch(RUN)
    for request in sent(state):
        answer(state, request)
    _tell(state, first, snapshot(4))
    _tell(state, second, snapshot(4))
    tell(state, plain.subscription_id, 4)
    assert watching.take(second) is not None
    _tell(state, second, _small(5))
    _tell(state, first, _small(5))
    told = [watching.take() for _ in range(3)]
    assert [news and news.watch for news in told] == [first, second, None]
    assert state.take_event() is not None


# --- the run list --------------------------------------------------------------------------------


def _page(revision: str, total: int, start: int, *items: Json) -> dict[str, Json]:
    """Return a page of the run list."""
    return RunListPage(revision=revision, start=start, total=total, items=items).document()


def _first(revision: str, total: int, *items: Json) -> Event:
    """Return the event with the first page."""
    payload = _page(revision, total, 0, *items)
    return Event(subscription_id="x", event=EventKind.RUNS, payload=payload, revision=1)


def _listed(limit: int | None = None) -> tuple[ClientState, Watching, Watch[RunListMirror]]:
    """Return a client that mirrors the run list."""
    state = ready()
    watching = Watching(state)
    watch, _ = watching.run_list(limit)
    [request] = sent(state)
    assert request.operation is Operation.VIEW_RUNS_WATCH
    answer(state, request)
    return state, watching, watch


def test_the_pages_of_a_list_are_asked_for() -> None:
    """One page at a time, until the list is whole; only then there is a change."""
    state, watching, watch = _listed(300)
    _tell(state, watch, _first("a", 3, "x"))
    assert watching.take() is None
    [request] = sent(state)
    assert request.operation is Operation.VIEW_RUNS_PAGE
    assert request.payload == {"cursor": 1, "revision": "a", "limit": 256}
    assert watching.take() is None
    assert sent(state) == []
    answer(state, request, receipt=_page("a", 3, 1, "y"))
    assert watching.take() is None
    [request] = sent(state)
    answer(state, request, receipt=_page("a", 3, 2, "z"))
    assert _news(watching, watch) == Change(is_snapshot=True)
    assert watch.mirror.items == ("x", "y", "z")
    assert sent(state) == []


def test_a_page_of_an_old_list_is_not_taken() -> None:
    """The answer that comes after a new first page starts the next question, and nothing else."""
    state, watching, watch = _listed()
    _tell(state, watch, _first("a", 2, "x"))
    watching.take()
    [old] = sent(state)
    _tell(state, watch, _first("b", 2, "y"))
    assert watching.take() is None
    assert sent(state) == []
    answer(state, old, receipt=_page("a", 2, 1, "late"))
    assert watching.take() is None
    [request] = sent(state)
    assert request.payload == {"cursor": 1, "revision": "b"}
    answer(state, request, Outcome.CONFLICT, receipt=_page("c", 1, 1))
    assert watching.take() is None
    [request] = sent(state)
    assert request.payload == {}
    answer(state, request, receipt=_page("c", 1, 0, "z"))
    assert _news(watching) == Change(is_snapshot=True)
    assert watch.mirror.items == ("z",)


@pytest.mark.parametrize("version", ["1.2.3", "9.9.9"])
def test_a_list_survives_a_lost_connection(version: str) -> None:
    """What was being collected is dropped; a server of another version ends the watch."""
    state, watching, watch = _listed()
    _tell(state, watch, _first("a", 2, "x"))
    watching.take()
    sent(state)
    state.disconnected()
    assert _news(watching).failure is not None
    greet(state, version)
    if version != "1.2.3":
        assert _news(watching).is_end
        assert sent(state) == []
        return
    restored, page = sent(state)
    answer(state, restored)
    answer(state, page, receipt=_page("a", 2, 1, "late"))
    assert watching.take() is None
    _tell(state, watch, _first("b", 1, "y"))
    assert _news(watching) == Change(is_snapshot=True)
    assert watch.mirror.items == ("y",)


def test_a_list_whose_page_gets_no_answer_stays() -> None:
    """A page that is given up leaves the list to the next event."""
    state, watching, watch = _listed()
    _tell(state, watch, _first("a", 2, "x"))
    watching.take()
    assert watch.page is not None
    state.give_up(watch.page[1])
    assert watching.take() is None
    assert [watch.mirror.wanted, watch.page] == [None, None]
