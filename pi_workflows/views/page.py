"""Which items a page holds: at most 256 and 64 KiB, whichever comes first, and at least one.

The client protocol, "Bounds". A page of a run is a window around its cursor; a list is filled
forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PAGE_BYTES_MAX, PAGE_ITEMS_MAX


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
    total: int,
    cursor: int | None,
    item: Callable[[int], bytes],
    bytes_max: int = PAGE_BYTES_MAX,
) -> Page:
    """Fill a page from its cursor, alternately to the left and to the right.

    Args:
        total: Length of the sequence.
        cursor: The index that the page is about; one past the end is the last, and None too.
        item: Gives the canonical bytes of the item at an index of `window(total, cursor)`.
        bytes_max: Bytes of the array of items.

    Returns:
        The page. The item at the cursor is always in it; a side ends at the first item that does
        not fit.
    """
    places = window(total, cursor)
    if not places:
        return Page(0, total, ())
    centre = total - 1 if cursor is None else min(cursor, total - 1)
    first = item(centre)
    left: list[bytes] = []
    right: list[bytes] = [first]
    # Each item costs its comma or the second bracket.
    bytes_left = bytes_max - len(first) - 2
    sides = [
        (left, range(centre - 1, places.start - 1, -1)),
        (right, range(centre + 1, places.stop)),
    ]
    pending = [(found, iter(indexes)) for found, indexes in sides]
    while pending:
        found, indexes = pending.pop(0)
        index = next(indexes, None)
        if index is None:
            continue
        content = item(index)
        if len(content) + 1 > bytes_left:
            continue
        bytes_left -= len(content) + 1
        found.append(content)
        pending.append((found, indexes))
    return Page(centre - len(left), total, (*reversed(left), *right))


def forward(items: Iterable[bytes], bytes_max: int = PAGE_BYTES_MAX) -> tuple[bytes, ...]:
    """Take items from the front while they fit.

    Args:
        items: Canonical bytes, at most as many as a page may hold; read no further than needed.
        bytes_max: Bytes of the array of items.

    Returns:
        The items that fit; the first one always does.
    """
    found: list[bytes] = []
    bytes_left = bytes_max - 1
    for content in items:
        if found and len(content) + 1 > bytes_left:
            break
        bytes_left -= len(content) + 1
        found.append(content)
    return tuple(found)
