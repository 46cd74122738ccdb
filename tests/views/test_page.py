"""Which items a page holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PAGE_BYTES_MAX, PAGE_ITEMS_MAX
from pi_workflows.views.page import around, forward, window


@pytest.mark.parametrize(
    ("total", "cursor", "expected"),
    [
        (0, None, range(0)),
        (0, 5, range(0)),
        (256, None, range(256)),
        (256, 3, range(256)),
        (257, None, range(1, 257)),
        (10_000, None, range(9_744, 10_000)),
        (10_000, 0, range(256)),
        (10_000, 127, range(256)),
        (10_000, 129, range(1, 257)),
        (10_000, 5_000, range(4_872, 5_128)),
        (10_000, 9_999, range(9_744, 10_000)),
        (10_000, 10_000, range(9_744, 10_000)),
        (10_000, 2**53 - 1, range(9_744, 10_000)),
    ],
)
def test_a_window_is_everything_the_end_or_around_the_cursor(
    total: int, cursor: int | None, expected: range
) -> None:
    """Up to 256 items are all in it; else the last 256 without a cursor, 128 before it with one."""
    assert window(total, cursor) == expected


def texts(lengths: list[int]) -> list[Json]:
    """Return texts whose canonical form has these lengths."""
    return ["x" * (length - 2) for length in lengths]


def size(contents: tuple[bytes, ...]) -> int:
    """Return the bytes of the array of items."""
    return len(b",".join(contents)) + 2


@given(
    st.lists(st.integers(2, 60), min_size=1, max_size=300),
    st.none() | st.integers(0, 400),
    st.integers(10, 500),
)
def test_a_page_grows_around_its_cursor_while_it_fits(
    lengths: list[int], cursor: int | None, bytes_max: int
) -> None:
    """The item at the cursor is in it, nothing that fits is left out, the bound holds."""
    total = len(lengths)
    items = texts(lengths)
    places = window(total, cursor)
    found = around(total, cursor, items[places.start : places.stop], bytes_max)
    stop = found.start + len(found.items)
    assert found.total == total
    assert list(found.items) == [canonical.encode(item) for item in items[found.start : stop]]
    centre = total - 1 if cursor is None else min(cursor, total - 1)
    assert found.start <= centre < stop
    assert len(found.items) <= PAGE_ITEMS_MAX
    if len(found.items) > 1:
        assert size(found.items) <= bytes_max
    left = bytes_max - size(found.items)
    for index in {found.start - 1, stop} & set(places):
        # What stands next to the page did not fit when its turn came, with more room than is left.
        assert lengths[index] + 1 > left


def test_the_bound_counts_brackets_and_commas() -> None:
    """Three items of ten bytes make an array of 34, and no page of 33."""
    items = texts([10] * 9)
    for bytes_max, count in ((33, 2), (34, 3), (44, 3), (45, 4)):
        assert len(around(9, 4, items, bytes_max).items) == count
        assert len(forward(items, bytes_max)) == count


def test_both_sides_grow_alike() -> None:
    """A cursor in the middle gets as many items before it as behind it, the first one before."""
    items = texts([10] * 101)
    assert around(101, 50, items, 5 * 11 + 1).start == 48
    assert around(101, 50, items, 4 * 11 + 1).start == 48
    assert around(101, 50, items, 2 * 11 + 1).start == 49


def test_one_side_goes_on_when_the_other_is_full() -> None:
    """An item that does not fit ends its own side only."""
    items = texts([10, 500, 10, 10, 10, 10])
    found = around(6, 2, items, 60)
    assert (found.start, len(found.items)) == (2, 4)


def test_a_page_holds_one_item_that_is_too_large() -> None:
    """The item at the cursor is sent whatever its size; so is the first of a list."""
    items = texts([PAGE_BYTES_MAX * 2, 10])
    assert [len(item) for item in around(2, 0, items).items] == [PAGE_BYTES_MAX * 2]
    assert len(forward(items)) == 1
    assert forward([]) == []


@given(st.lists(st.integers(2, 60), max_size=50), st.integers(10, 500))
def test_a_list_is_filled_from_the_front(lengths: list[int], bytes_max: int) -> None:
    """A list holds what fits before the first item that does not."""
    items = texts(lengths)
    count = len(forward(items, bytes_max))
    contents = tuple(canonical.encode(item) for item in items)
    if count > 1:
        assert size(contents[:count]) <= bytes_max
    if count < len(items):
        assert size(contents[: count + 1]) > bytes_max
