"""Running text as lines that fit a window."""

from __future__ import annotations

import textwrap
from typing import Final

# Text is hard to follow over wider lines, and needs some room in any case.
_COLUMNS_MAX: Final = 110
_TEXT_COLUMNS_MIN: Final = 40


def wrapped(text: str, columns: int | None, *, indent: int = 0) -> list[str]:
    """Return a text in lines that fit beside an indentation.

    Args:
        text: A safe text.
        columns: How wide the window is; None, in a pipe, keeps the text whole.
        indent: How many columns stand before each line.

    Returns:
        The lines, at least one.
    """
    if columns is None:
        return [text]
    width = max(_TEXT_COLUMNS_MIN, min(columns, _COLUMNS_MAX) - indent)
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
