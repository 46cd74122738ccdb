"""The run list: what is shown fits together, whatever pages come in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.list_mirror import RunListMirror
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.views import RunListPage, ViewRunsPage
from tests.protocol.run_news import snapshot, unavailable

_REPLACED: Final = Change(is_snapshot=True)


def _document(revision: str, total: int, start: int, *items: Json) -> dict[str, Json]:
    """Return a page."""
    return RunListPage(revision=revision, start=start, total=total, items=items).document()


def _first(revision: str, total: int, *items: Json) -> Event:
    """Return the event that brings the first page."""
    return Event(
        subscription_id="subscription-1",
        event=EventKind.RUNS,
        payload=_document(revision, total, 0, *items),
        revision=1,
    )


def _reply(revision: str, total: int, start: int, *items: Json) -> Reply:
    """Return the answer that brings another page."""
    return Reply(Outcome.ACCEPTED, receipt=_document(revision, total, start, *items))


def _conflict(revision: str, total: int, start: int, *items: Json) -> Reply:
    """Return the answer to a page of a list that is no more."""
    receipt = _document(revision, total, start, *items)
    return Reply(Outcome.CONFLICT, receipt=receipt, error="The run list changed.")


def _wanted(mirror: RunListMirror) -> ViewRunsPage:
    """Return the page that the mirror asks for."""
    assert mirror.wanted is not None
    return mirror.wanted


def test_a_short_list_is_its_first_page() -> None:
    """A list that fits one page is there at once, and each event replaces it."""
    mirror = RunListMirror()
    assert (mirror.items, mirror.revision, mirror.is_stale) == ((), None, True)
    assert mirror.take(_first("a", 2, "x", "y")) == _REPLACED
    assert (mirror.items, mirror.total, mirror.revision) == (("x", "y"), 2, "a")
    assert (mirror.wanted, mirror.is_stale) == (None, False)
    assert mirror.take(_first("b", 0)) == _REPLACED
    assert (mirror.items, mirror.total) == ((), 0)


def test_no_more_runs_are_collected_than_asked_for() -> None:
    """A list of the newest few wants no page beyond them."""
    mirror = RunListMirror(3)
    assert mirror.page_limit == 3
    mirror.take(_first("a", 1_000, "x", "y"))
    assert _wanted(mirror) == ViewRunsPage(cursor=2, revision="a", limit=3)
    assert mirror.take_page(_wanted(mirror), _reply("a", 1_000, 2, "z", "w")) == _REPLACED
    assert (mirror.items, mirror.total) == (("x", "y", "z"), 1_000)
    assert (RunListMirror(5_000).page_limit, RunListMirror(None).page_limit) == (
        PAGE_ITEMS_MAX,
        None,
    )


def test_the_list_is_replaced_when_every_page_is_there() -> None:
    """Until the last page came, the list before stays."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 1, "old"))
    assert mirror.take(_first("b", 3, "x")) == Change()
    assert mirror.items == ("old",)
    assert mirror.take_page(_wanted(mirror), _reply("b", 3, 1, "y")) == Change()
    assert mirror.items == ("old",)
    assert _wanted(mirror) == ViewRunsPage(cursor=2, revision="b")
    assert mirror.take_page(_wanted(mirror), _reply("b", 3, 2, "z")) == _REPLACED
    assert mirror.wanted is None
    assert list(mirror.items) == ["x", "y", "z"]
    assert mirror.revision == "b"


def test_a_list_that_changed_is_collected_anew() -> None:
    """A conflict drops every page of the old revision, also the one that it brings."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 2, "x"))
    asked = _wanted(mirror)
    assert mirror.take_page(asked, _conflict("b", 3, 1, "wrong")) == Change()
    assert _wanted(mirror) == ViewRunsPage()
    assert mirror.take_page(asked, _reply("a", 2, 1, "late")) == Change()
    assert mirror.take_page(_wanted(mirror), _reply("c", 2, 0, "y")) == Change()
    assert _wanted(mirror) == ViewRunsPage(cursor=1, revision="c")
    assert mirror.take_page(_wanted(mirror), _reply("c", 2, 1, "z")) == _REPLACED
    assert mirror.items == ("y", "z")


def test_an_event_of_another_revision_begins_anew() -> None:
    """The page that is on its way then belongs to no list any more."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 2, "x"))
    asked = _wanted(mirror)
    mirror.take(_first("b", 2, "y"))
    assert mirror.take_page(asked, _reply("a", 2, 1, "late")) == Change()
    assert mirror.take_page(_wanted(mirror), _reply("b", 2, 1, "z")) == _REPLACED
    assert mirror.items == ("y", "z")


def test_events_of_one_revision_do_not_hold_up_the_list() -> None:
    """A run that changes all the time lets the list be shown, and then be collected again."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 2, "x1"))
    asked = _wanted(mirror)
    mirror.take(_first("a", 2, "x2"))
    mirror.take(_first("a", 2, "x3"))
    assert mirror.take_page(asked, _reply("a", 2, 1, "y1")) == _REPLACED
    assert mirror.items == ("x1", "y1")
    assert mirror.take_page(_wanted(mirror), _reply("a", 2, 1, "y2")) == _REPLACED
    assert (mirror.items, mirror.wanted) == (("x3", "y2"), None)


def test_a_newer_first_page_may_be_the_whole_list() -> None:
    """What came while the last page was on its way counts without another one."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 2, "x1"))
    asked = _wanted(mirror)
    mirror.take(_first("a", 2, "x2", "y2"))
    assert mirror.take_page(asked, _reply("a", 2, 1, "y1")) == _REPLACED
    assert (mirror.items, mirror.wanted) == (("x2", "y2"), None)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (_reply("b", 3, 1, "y"), "pageMismatch"),
        (_reply("a", 3, 0, "y"), "pageMismatch"),
        (_reply("a", 3, 2, "y"), "pageMismatch"),
        (_reply("a", 3, 1), "pageMismatch"),
        (Reply(Outcome.ACCEPTED, receipt={"items": []}), "pageInvalid"),
        (Reply(Outcome.UNAVAILABLE, error="Stopping."), "pageRefused"),
        (Reply(Outcome.REJECTED, error="No."), "pageRefused"),
    ],
)
def test_a_page_that_does_not_fit_keeps_the_list(reply: Reply, code: str) -> None:
    """Another revision, another place, nothing at all: the last good list stays."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 1, "old"))
    mirror.take(_first("a", 3, "x"))
    assert mirror.take_page(_wanted(mirror), reply) == Change(fault=code)
    assert (mirror.items, mirror.wanted) == (("old",), None)
    assert mirror.take(_first("a", 1, "new")) == _REPLACED


def test_an_event_that_does_not_fit_keeps_the_list() -> None:
    """Events of another kind, other payloads and pages from the middle change nothing."""
    mirror = RunListMirror()
    mirror.take(_first("a", 1, "x"))
    broken = _first("a", 1).model_copy(update={"payload": {"items": []}})
    middle = _first("a", 1).model_copy(update={"payload": _document("b", 2, 1, "y")})
    for event, code in (
        (snapshot(4), "eventUnknown"),
        (broken, "eventInvalid"),
        (middle, "pageMismatch"),
    ):
        assert mirror.take(event) == Change(fault=code)
        assert (mirror.items, mirror.wanted) == (("x",), None)


def test_a_lost_connection_keeps_the_list_to_look_at() -> None:
    """The list stays, stale, and what was being collected is dropped."""
    mirror = RunListMirror(None)
    mirror.take(_first("a", 1, "x"))
    mirror.take(_first("b", 2, "y"))
    asked = _wanted(mirror)
    change = mirror.take(unavailable("connection_lost"))
    assert change.failure is not None
    assert (mirror.items, mirror.is_stale, mirror.wanted) == (("x",), True, None)
    assert mirror.take_page(asked, _reply("b", 2, 1, "z")) == Change()
    mirror.take(_first("b", 2, "y"))
    mirror.give_up()
    assert (mirror.wanted, mirror.is_stale) == (None, True)
    assert mirror.take(_first("c", 1, "z")) == _REPLACED
    assert not mirror.is_stale


class _Server:
    """A run list whose pages hold two runs, with a name for each order."""

    def __init__(self) -> None:
        self.runs: list[Json] = []
        self.number = 0

    def start(self) -> None:
        """Put a new run in front."""
        self.number += 1
        self.runs = [self.number, *self.runs]

    def page(self, start: int) -> tuple[str, int, int, Sequence[Json]]:
        """Return a page of the list as it is now."""
        return str(self.number), len(self.runs), start, self.runs[start : start + 2]


@given(st.lists(st.sampled_from(["start", "tell", "ask", "answer"]), max_size=40))
def test_what_is_shown_was_the_list_at_one_time(acts: list[str]) -> None:
    """Runs that start between the pages are never twice in the list, and none is missing."""
    server, mirror = _Server(), RunListMirror(None)
    asked: list[ViewRunsPage] = []
    for act in acts:
        if act == "start":
            server.start()
        elif act == "tell":
            revision, total, _, items = server.page(0)
            mirror.take(_first(revision, total, *items))
        elif act == "ask" and mirror.wanted is not None:
            asked = [mirror.wanted]
        elif act == "answer" and asked:
            payload = asked.pop()
            revision, total, start, items = server.page(payload.cursor or 0)
            is_same = payload.revision in (None, revision)
            answer = _reply if is_same else _conflict
            mirror.take_page(payload, answer(revision, total, start, *items))
        if mirror.revision is not None:
            count = int(mirror.revision)
            assert list(mirror.items) == list(range(count, 0, -1))
            assert mirror.total == count
