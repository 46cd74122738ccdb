"""The pages that are kept: those beside what is shown, until a change of their own kind."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.base.vocabulary import PageKind
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.page_cache import PageCache
from pi_workflows.protocol.views import RunPage, ViewPage

_RUN: Final = "build-1"
_SIZE: Final = 10


def _page(
    cursor: int | None, total: int = 100, revision: int = 5, kind: PageKind = "trace"
) -> RunPage:
    """Return the page around a cursor, of at most ten items that are their own indexes."""
    centre = total if cursor is None else cursor
    start = max(0, min(centre - _SIZE // 2, total - _SIZE))
    items: tuple[Json, ...] = tuple(range(start, min(total, start + _SIZE)))
    return RunPage(
        run_id=_RUN,
        revision=revision,
        kind=kind,
        cursor=cursor,
        start=start,
        total=total,
        items=items,
    )


def _asked(cursor: int | None, kind: PageKind = "trace") -> ViewPage:
    """Return a question."""
    return ViewPage(kind=kind, cursor=cursor)


def _filled(*cursors: int | None, kind: PageKind = "trace", revision: int = 5) -> PageCache:
    """Return a cache that shows the first cursor, with pages."""
    cache = PageCache(_RUN)
    cache.show(kind, cursors[0])
    for cursor in cursors:
        assert cache.take(_asked(cursor, kind), _page(cursor, kind=kind, revision=revision))
    return cache


def test_a_place_wants_its_page_and_then_the_neighbours() -> None:
    """First what is looked at, then what lies before and behind it."""
    cache = PageCache(_RUN)
    assert cache.wanted("trace") == ()
    assert cache.show("trace", 50) is None
    assert cache.wanted("trace") == (_asked(50),)
    assert cache.take(_asked(50), _page(50))
    assert cache.show("trace", 50) == _page(50)
    assert cache.wanted("trace") == (_asked(44), _asked(55))
    assert cache.take(_asked(44), _page(44))
    assert cache.take(_asked(55), _page(55))
    assert cache.wanted("trace") == ()


def test_moving_keeps_what_is_beside() -> None:
    """A step to the side finds its page, and lets go of the one on the other side."""
    cache = _filled(50, 44, 55)
    assert cache.show("trace", 56) == _page(55)
    assert cache.wanted("trace") == (_asked(60),)
    assert cache.show("trace", 40) is None
    assert cache.wanted("trace") == (_asked(40),)


def test_the_end_is_the_last_page() -> None:
    """Without a cursor, or behind the end, the page that ends the sequence is shown."""
    cache = _filled(None)
    assert cache.show("trace", None) == cache.show("trace", 100) == _page(None)
    assert cache.wanted("trace") == (_asked(89),)
    empty = PageCache(_RUN)
    empty.show("trace")
    assert empty.take(_asked(None), _page(None, total=0))
    assert empty.show("trace", 7) == _page(None, total=0)
    assert empty.wanted("trace") == ()


def test_kinds_have_places_of_their_own() -> None:
    """What is shown of one kind says nothing of another."""
    cache = _filled(50)
    assert cache.show("steps", 50) is None
    assert cache.take(_asked(50, "steps"), _page(50, kind="steps"))
    assert cache.show("trace", 50) == _page(50)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "other"},
        {"kind": "steps"},
        {"cursor": 51},
        {"cursor": None},
        {"revision": 6},
        {"start": 51},
        {"start": 95, "total": 100},
        {"items": ()},
    ],
)
def test_a_page_that_was_not_asked_for_is_dropped(change: dict[str, object]) -> None:
    """Another run, kind, cursor or revision, or a page without the cursor's item."""
    cache = PageCache(_RUN)
    cache.show("trace", 50)
    asked = ViewPage(kind="trace", cursor=50, expected_revision=5)
    assert not cache.take(asked, _page(50).model_copy(update=change))
    assert cache.show("trace", 50) is None
    assert cache.take(asked, _page(50))


def test_a_late_page_is_dropped() -> None:
    """Whoever has moved on does not want what was shown before."""
    cache = _filled(50)
    cache.show("trace", 5)
    assert not cache.take(_asked(44), _page(44))
    assert not cache.take(_asked(50, "steps"), _page(50, kind="steps"))


def test_a_sequence_that_grew_costs_the_page_at_its_end() -> None:
    """Items do not change any more; only a page that ended the sequence is too short."""
    cache = _filled(None, 89)
    cache.note(Change(targets={"timeline/trace:tail": 6}), 6)
    assert cache.show("trace", None) is None
    assert not cache.take(_asked(None), _page(None))
    assert cache.take(_asked(None), _page(None, total=101, revision=6))
    middle = _filled(50, 44)
    middle.note(Change(targets={"timeline/trace:tail": 6}), 6)
    assert middle.show("trace", 50) == _page(50)
    assert middle.wanted("trace") == (_asked(55),)


def test_a_reload_costs_every_page_of_its_kind() -> None:
    """Pages of an older revision are dropped, also those that come late; newer ones are kept."""
    cache = _filled(50, kind="steps")
    cache.note(Change(targets={"timeline/trace:tail": 6}), 6)
    assert cache.show("steps", 50) is not None
    cache.note(Change(targets={"replay/steps:reload": 7}), 9)
    assert cache.show("steps", 50) is None
    assert not cache.take(_asked(50, "steps"), _page(50, kind="steps", revision=6))
    assert cache.take(_asked(50, "steps"), _page(50, kind="steps", revision=7))
    cache.note(Change(targets={"replay/steps:reload": 7}), 9)
    assert cache.show("steps", 50) is not None


def test_what_a_run_gave_is_asked_for_again_when_a_node_ended() -> None:
    """The page of all that a run gave is good until its own target changes."""
    cache = PageCache(_RUN)
    page = RunPage(
        run_id=_RUN, revision=5, kind="aggregate", start=0, total=1, items=({"$artifact": {}},)
    )
    assert cache.show("aggregate") is None
    (asked,) = cache.wanted("aggregate")
    assert asked == ViewPage(kind="aggregate")
    assert cache.take(asked, page)
    cache.note(Change(targets={"replay/steps:reload": 6, "timeline/trace:tail": 6}), 6)
    assert cache.show("aggregate") == page
    assert cache.wanted("aggregate") == ()
    cache.note(Change(targets={"inspector/aggregates:reload": 7}), 7)
    assert cache.show("aggregate") is None
    assert not cache.take(asked, page)


def test_a_snapshot_costs_every_older_page() -> None:
    """Nobody knows what changed before it, of the kinds not shown yet either."""
    cache = _filled(50)
    cache.note(Change(is_snapshot=True), 6)
    assert cache.show("trace", 50) is None
    assert not cache.take(_asked(50), _page(50, revision=5))
    cache.show("steps", 1)
    assert not cache.take(_asked(1, "steps"), _page(1, kind="steps", revision=5))
    assert cache.take(_asked(50), _page(50, revision=6))
    cache.note(Change(is_snapshot=True), None)
    assert cache.show("trace", 50) is not None


@given(st.lists(st.none() | st.integers(0, 120), max_size=20), st.integers(0, 3))
def test_no_more_than_three_pages_are_kept(cursors: list[int | None], answers: int) -> None:
    """Wherever somebody looks, the shown page is right, and soon nothing more is wanted."""
    cache = PageCache(_RUN)
    for cursor in cursors:
        page = cache.show("trace", cursor)
        index = 99 if cursor is None else min(cursor, 99)
        assert page is None or index in page.items
        for asked in cache.wanted("trace")[:answers]:
            cache.take(asked, _page(asked.cursor))
        assert len(cache) <= 3
    for _ in range(4):
        for asked in cache.wanted("trace"):
            cache.take(asked, _page(asked.cursor))
    assert cache.wanted("trace") == ()
    assert len(cache) <= 3
