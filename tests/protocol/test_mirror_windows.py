"""Windows of a mirrored view: tails that continue them, and what makes them older than the rest."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.protocol.change import Change
from tests.protocol.run_news import (
    delta,
    member,
    mirror_with,
    new_mirror,
    page,
    patch,
    run_view,
    snapshot,
    tail,
)

_TAILS: list[tuple[str, tuple[str, ...], str]] = [
    ("timeline/trace:tail", ("tracePage",), "trace"),
    ("timeline/session:tail", ("session", "eventPage"), "events"),
    ("conversation/entries:tail", ("session", "entryPage"), "entries"),
]


@pytest.mark.parametrize(("target", "place", "section"), _TAILS)
def test_a_tail_continues_a_window_that_ends_at_its_end(
    target: str, place: tuple[str, ...], section: str
) -> None:
    """Items are appended while the window ends at the old total; it loses its head over 256."""
    full = PAGE_ITEMS_MAX + 10
    mirror = mirror_with(place, page(full - 1, 10))
    change = mirror.take(patch(4, 5, tail(5, full, full - 1, target=target)))
    assert change == Change(targets={target: 5})
    assert member(mirror, *place) == page(full, 10)
    mirror.take(patch(5, 6, tail(6, full + 3, full, full + 1, full + 2, target=target)))
    assert member(mirror, *place) == page(full + 3, 13)
    assert section not in mirror.stale


@pytest.mark.parametrize(("target", "place", "section"), _TAILS)
def test_a_tail_gives_any_other_window_its_total_only(
    target: str, place: tuple[str, ...], section: str
) -> None:
    """A window that ends earlier keeps its items, learns the total, and is older from then on."""
    window: dict[str, Json] = {"start": 0, "total": 9, "items": [0, 1, 2]}
    mirror = mirror_with(place, window)
    for revision, total in ((5, 10), (6, 11)):
        change = mirror.take(
            patch(revision - 1, revision, tail(revision, total, "x", target=target))
        )
        assert change.stale == (frozenset({section}) if revision == 5 else frozenset())
        assert member(mirror, *place) == {**window, "total": total}
    assert mirror.stale == {section}
    assert not mirror.is_stale
    mirror.take(snapshot(7))
    assert mirror.stale == frozenset()


def test_a_tail_that_does_not_reach_its_total_is_older() -> None:
    """Items that are missing are noticed at once, and later ones do not hide the hole."""
    mirror = new_mirror()
    assert mirror.take(patch(4, 5, tail(5, 9, 3))).stale == {"trace"}
    mirror.take(patch(5, 6, tail(6, 4)))
    assert mirror.take(patch(6, 7, tail(7, 5, 4))).stale == frozenset()
    assert member(mirror, "tracePage") == {"start": 0, "total": 5, "items": [0, 1, 2, 3]}
    assert mirror.stale == {"trace"}


@pytest.mark.parametrize(
    "window",
    [
        None,
        {"start": 0, "total": 3},
        {"start": 0, "total": 3, "items": {}},
        {"start": -1, "total": 3, "items": []},
        {"start": 0, "total": True, "items": []},
        {"total": 3, "items": []},
    ],
)
def test_a_tail_needs_a_window(window: Json) -> None:
    """A view without the page, or with something else in its place, takes no tail."""
    mirror = new_mirror(tracePage=window)
    assert mirror.take(patch(4, 5, tail(5, 4, 3))).fault == "pageInvalid"
    without = new_mirror(session=None)
    event = patch(4, 5, tail(5, 4, 3, target="conversation/entries:tail"))
    assert without.take(event).fault == "pageInvalid"


def test_reloads_say_what_is_older() -> None:
    """Steps, aggregates and the session's events are fetched again when somebody wants them."""
    mirror = new_mirror()
    change = mirror.take(
        patch(
            4,
            5,
            delta(5, "replay/steps:reload", ("replace", "/stepTotal", 1)),
            delta(5, "inspector/aggregates:reload", index=1),
            delta(5, "timeline/session:reload", ("replace", "/total", 300), index=2),
        )
    )
    assert change.stale == mirror.stale == {"steps", "aggregates", "events"}
    assert member(mirror, "stepTotal") == 1
    assert member(mirror, "session", "eventPage") == {"start": 0, "total": 300, "items": [0, 1]}
    mirror.take(patch(5, 6, tail(6, 301, "x", target="timeline/session:tail")))
    assert member(mirror, "session", "eventPage") == {"start": 0, "total": 301, "items": [0, 1]}


def test_parts_of_a_session_are_replaced_whole() -> None:
    """The binding and the capture come as they are; the updates in their own members."""
    mirror = new_mirror()
    mirror.take(
        patch(
            4,
            5,
            delta(5, "conversation/capture", ("replace", "", {"status": "recording"})),
            delta(5, "conversation/binding", ("add", "", {"piSessionId": "t"}), index=1),
            delta(
                5,
                "inspector/updates",
                ("replace", "/updates", [{"key": "k"}]),
                ("replace", "/updateTotal", 1),
                index=2,
            ),
        )
    )
    assert member(mirror, "session", "capture") == {"status": "recording"}
    assert member(mirror, "session", "binding") == {"piSessionId": "t"}
    assert member(mirror, "updates") == [{"key": "k"}]


def test_an_event_page_that_lost_its_head_has_no_replay_state() -> None:
    """The state before the old head is none of the new one; while the head stays, so does it."""
    state: dict[str, Json] = {"throughSeq": 9}
    session: dict[str, Json] = {
        "eventPage": page(PAGE_ITEMS_MAX + 8, 9),
        "replayCheckpoint": state,
    }
    mirror = new_mirror(session=session)
    first, second = PAGE_ITEMS_MAX + 9, PAGE_ITEMS_MAX + 10
    mirror.take(patch(4, 5, tail(5, first, first - 1, target="timeline/session:tail")))
    assert member(mirror, "session") == {"eventPage": page(first, 9), "replayCheckpoint": state}
    mirror.take(patch(5, 6, tail(6, second, second - 1, target="timeline/session:tail")))
    assert member(mirror, "session") == {"eventPage": page(second, 10), "replayCheckpoint": None}


@pytest.mark.parametrize("name", ["currentNode", "waitingOn"])
def test_the_window_of_a_definition_stays_where_it_was(name: str) -> None:
    """It is older while the run is at a node that it lacks, and a fresh view brings that node."""
    window: dict[str, Json] = {"nodes": {"a": {}, "b": {}}, "nodeTotal": 9}
    mirror = new_mirror(workflow=window)
    at_node = (("remove", "/state/currentNode", None), ("add", f"/state/{name}", "b"))
    assert mirror.take(patch(4, 5, delta(5, "graph/", *at_node))).stale == frozenset()
    for revision, node in ((6, "c"), (7, "d")):
        moved = delta(revision, "graph/", ("replace", f"/state/{name}", node))
        change = mirror.take(patch(revision - 1, revision, moved))
        assert change.stale == (frozenset({"definition"}) if node == "c" else frozenset())
        assert mirror.stale == {"definition"}
    assert (member(mirror, "workflow"), mirror.is_stale) == (window, False)
    mirror.take(patch(7, 8, delta(8, "graph/", ("remove", f"/state/{name}", None))))
    assert mirror.stale == frozenset()
    mirror.take(patch(8, 9, delta(9, "graph/", ("replace", "/graphSteps", [{"nodeId": "c"}]))))
    assert mirror.stale == {"definition"}
    mirror.take_view(run_view(9, workflow={**window, "nodes": {"c": {}}}))
    assert mirror.stale == frozenset()


def test_a_whole_definition_is_never_older() -> None:
    """Without a window there is nothing that could lack a node."""
    mirror = new_mirror(workflow={"nodes": {"a": {}}})
    moved = delta(5, "graph/", ("replace", "/state/currentNode", "elsewhere"))
    assert mirror.take(patch(4, 5, moved)).stale == mirror.stale == frozenset()
