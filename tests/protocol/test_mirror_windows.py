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
