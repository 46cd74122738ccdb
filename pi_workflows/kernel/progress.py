"""How far something long is: told often enough that a person sees it move, and can end it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

# Milliseconds of work, also where each row is a large value.
_STEP_ROWS: Final = 64


def counted(rows: Iterable[T], progress: Callable[[int], None]) -> Iterator[T]:
    """Give rows on and tell how many there were.

    Args:
        rows: One by one, however many.
        progress: Called with the number of rows so far, before the first and at least each 64.

    Yields:
        The rows.
    """
    for count, row in enumerate(rows):
        if count % _STEP_ROWS == 0:
            progress(count)
        yield row
