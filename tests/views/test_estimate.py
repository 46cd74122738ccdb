"""When work will be done, by what it published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pi_workflows.views.estimate import Estimate, Observation, epoch, estimate


def track(*counts: float, every_ms: int = 1_000, total: float = 100) -> list[Observation]:
    """Return accounts of a track in even steps of time."""
    return [
        Observation(place * every_ms, "running", "copy", "files", count, total)
        for place, count in enumerate(counts)
    ]


def test_even_work_ends_when_its_rate_says() -> None:
    """Ten in a second, forty left: four seconds, the same at every quartile."""
    found = estimate(track(0, 10, 20, 30, 40, 50, 60))
    assert found == Estimate(10_000, 10_000, 10_000, "high", "rate")


def test_the_range_is_that_of_the_quartiles() -> None:
    """Uneven work has an earlier and a later end, and less confidence."""
    found = estimate(track(0, 4, 14, 20, 36, 44))
    assert found is not None
    assert found.earliest_ms < found.finish_ms < found.latest_ms
    assert found.confidence == "medium"


def test_only_the_last_eight_intervals_count() -> None:
    """What was slow in the beginning is forgotten."""
    slow = [each * 0.1 for each in range(10)]
    fast = [slow[-1] + 5 * each for each in range(1, 9)]
    found = estimate(track(*slow, *fast))
    assert found is not None
    assert found.finish_ms - 17_000 == round((100 - fast[-1]) / 5 * 1_000)


@pytest.mark.parametrize(
    "change",
    [{"phase": "check"}, {"unit": "bytes"}, {"total": 90.0}, {"completed": 5.0}],
    ids=str,
)
def test_an_epoch_ends_where_the_work_is_another(change: dict[str, object]) -> None:
    """Rates of before say nothing about what is counted now."""
    before = track(0, 10, 20)
    turned = replace(before[-1], at_ms=3_000, **change)  # type: ignore[arg-type] # its own fields
    assert list(epoch([*before, turned])) == [turned]
    assert estimate([*before, turned]) is None


def test_work_that_begins_again_is_a_new_epoch() -> None:
    """What had ended and goes on is counted from there."""
    done = [replace(each, status="completed") for each in track(0, 10)]
    again = Observation(5_000, "running", "copy", "files", 20, 100)
    assert list(epoch([*done, again])) == [again]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_what_has_ended_has_no_estimate(status: str) -> None:
    """Nor one of the source's."""
    ended = replace(track(0, 10, 20)[-1], status=status, source_finish_ms=9_000)
    assert estimate([*track(0, 10), ended]) is None


def test_a_fresh_word_of_the_source_wins() -> None:
    """One that has passed, or is old, does not."""
    *before, last = track(0, 10, 20)
    said = replace(last, source_finish_ms=50_000, source_updated_ms=2_000)
    assert estimate([*before, said]) == Estimate(50_000, 50_000, 50_000, "high", "source")
    for stale in (
        replace(last, source_finish_ms=1_000),
        replace(last, at_ms=900_000, source_finish_ms=950_000, source_updated_ms=0),
    ):
        found = estimate([*before, stale])
        assert found is not None
        assert found.source == "rate"


def test_nothing_is_estimated_of_nothing() -> None:
    """Without counts, with one account, or without movement."""
    assert estimate([]) is None
    assert estimate(track(10)) is None
    assert estimate(track(10, 10, 10)) is None
    assert estimate([Observation(0, "running"), Observation(1, "running")]) is None
