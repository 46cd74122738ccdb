"""Which items a page holds: at most 256 and 64 KiB, whichever comes first, and at least one.

The client protocol, "Bounds". A page of a run is a window around its cursor; a list is filled
forward.
"""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import FRAME_DEPTH_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a numbered sequence.

    Attributes:
        start: The index of the first item, from 0.
        total: Length of the whole sequence.
        items: Canonical bytes of each item.
    """

    start: int
    total: int
    items: tuple[bytes, ...]

    @property
    def documents(self) -> list[Json]:
        """The items, ready to stand in a document."""
        return [canonical.fragment(item) for item in self.items]


def window(total: int, cursor: int | None) -> range:
    """Return the indexes that a page may hold.

    Args:
        total: Length of the sequence.
        cursor: The index that the page is about; None is the end.

    Returns:
        Everything up to 256; the last 256 without a cursor; else 256 around the cursor.
    """
    if total <= PAGE_ITEMS_MAX:
        return range(total)
    last = total - PAGE_ITEMS_MAX
    start = last if cursor is None else min(max(0, cursor - PAGE_ITEMS_MAX // 2), last)
    return range(start, start + PAGE_ITEMS_MAX)


def around(
    total: int, cursor: int | None, items: list[Json], bytes_max: int = PAGE_BYTES_MAX
) -> Page:
    """Fill a page from its cursor, alternately to the left and to the right.

    Args:
        total: Length of the sequence.
        cursor: The index that the page is about; one past the end is the last, and None too.
        items: The items of `window(total, cursor)`.
        bytes_max: Bytes of the array of items.

    Returns:
        The page. The item at the cursor is always in it; a side ends at the first item that does
        not fit.
    """
    if not items:
        return Page(0, total, ())
    places = window(total, cursor)
    contents = canonical.encode_each(items, depth_max=FRAME_DEPTH_MAX)
    centre = (total - 1 if cursor is None else min(cursor, total - 1)) - places.start
    first, last = _grown(contents, centre, bytes_max)
    return Page(places.start + first, total, tuple(contents[first:last]))


def _grown(contents: list[bytes], centre: int, bytes_max: int) -> tuple[int, int]:
    """Return the range that grows from a centre while it fits."""
    first, last = centre, centre + 1
    # Each item costs its comma or the second bracket.
    bytes_left = bytes_max - len(contents[centre]) - 2
    may_grow = {-1: True, 1: True}
    side = -1
    while any(may_grow.values()):
        index = first - 1 if side < 0 else last
        is_there = 0 <= index < len(contents)
        if may_grow[side] and is_there and len(contents[index]) < bytes_left:
            bytes_left -= len(contents[index]) + 1
            first, last = min(first, index), max(last, index + 1)
        else:
            may_grow[side] = False
        side = -side
    return first, last


def forward(items: list[Json], bytes_max: int = PAGE_BYTES_MAX) -> list[Json]:
    """Take items from the front while they fit.

    Args:
        items: At most as many items as a page may hold.
        bytes_max: Bytes of the array of items.

    Returns:
        The items that fit, encoded; the first one always does.
    """
    found: list[Json] = []
    bytes_left = bytes_max - 1
    for content in canonical.encode_each(items, depth_max=FRAME_DEPTH_MAX):
        bytes_left -= len(content) + 1
        if found and bytes_left < 0:
            break
        found.append(canonical.fragment(content))
    return found
