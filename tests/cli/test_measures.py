"""Durations, ages and sizes are short, and never say more than was measured."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pi_workflows.cli.measures import (
    MOMENT_CHARS,
    age,
    day_and_time,
    duration,
    moment,
    plural,
    second,
    size,
)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0.0 s"),
        (0, "0.0 s"),
        (99, "0.0 s"),
        (12_399, "12.3 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (3_600_000, "1 h"),
        (3_601_000, "1 h"),
        (187_200_000, "2 d 4 h"),
    ],
)
def test_duration(ms: int, text: str) -> None:
    """Tenths of a second below a minute, then the two greatest units."""
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "now"), (999, "now"), (40_000, "40 s"), (5 * 86_400_000, "5 d")]
)
def test_age(ms: int, text: str) -> None:
    """One unit is enough."""
    assert age(ms) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 byte"),
        (1_023, "1,023 bytes"),
        (1_536, "1.5 KiB"),
        (20 * 2**20, "20 MiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_size(count: int, text: str) -> None:
    """Whole bytes as they are, more in the greatest unit that fits."""
    assert size(count) == text


def test_plural() -> None:
    """A noun agrees with its count."""
    assert [plural(n, "run") for n in (0, 1, 1_200)] == ["0 runs", "1 run", "1,200 runs"]


@given(st.integers(-(2**63), 2**63 - 1))
@example(2**63 - 1)
@example(-1)
@example(253_402_300_799_999)
def test_any_number_is_a_time(ms: int) -> None:
    """A damaged file may have any number for a time: none breaks the line that tells it."""
    day, time = day_and_time(ms)
    told = moment(ms)
    is_known = told != "beyond the calendar"
    assert told == (f"{day} {time}" if is_known else day)
    assert second(ms) == (told[:-4] if is_known else told)
    assert len(time) == len("00:00:00.000")
    assert all((age(ms), duration(ms)))


def test_moments_sort() -> None:
    """Years of fewer digits are padded, and no millisecond is lost to rounding."""
    early, late = moment(-60_000_000_000_000), moment(253_402_000_000_999)
    assert early[:3] == "006"
    assert late.endswith(".999")
    assert len(early) == len(late) == MOMENT_CHARS
