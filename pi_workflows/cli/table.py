"""Lists as tables: aligned columns, with styles on a terminal, whole in a pipe."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final, TypeAlias

from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.output import Line, Output, Span

Cell: TypeAlias = str | tuple[str, str]
"""A text, or a text with its style."""

ELLIPSIS: Final = "…"
_GAP: Final = "  "
_WIDE: Final = frozenset({"W", "F"})


def write_table(
    output: Output,
    headings: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    numbers: frozenset[str] = frozenset(),
) -> None:
    """Write rows under their headings to standard output.

    Args:
        output: Where to. On a terminal a line loses what does not fit the window.
        headings: One for each column.
        rows: Their cells; every text is escaped here.
        numbers: The headings of columns that are aligned to the right.
    """
    titles = [(heading.upper(), "dim") for heading in headings]
    lines = [titles, *([_span(cell) for cell in row] for row in rows)]
    widths = [max(_width(line[at][0]) for line in lines) for at in range(len(headings))]
    is_number = [heading in numbers for heading in headings]
    output.styled(_aligned(line, widths, is_number) for line in lines)


def short_ids(output: Output, names: Sequence[str], *, chars_min: int) -> dict[str, str]:
    """Return long IDs as their beginnings where a person reads them; every command takes those.

    Args:
        output: Where they are listed; in a pipe they stay whole.
        names: The IDs of one list.
        chars_min: What an ID keeps in any case.

    Returns:
        What is shown for each: as many characters as tell it from the others, and an ellipsis that
        may be typed with them.
    """
    if not output.is_terminal:
        return {name: name for name in names}
    others = sorted(set(names))
    shown: dict[str, str] = {}
    for at, name in enumerate(others):
        near = (*others[max(0, at - 1) : at], *others[at + 1 : at + 2])
        length = max((_common(name, other) + 1 for other in near), default=0)
        kept = max(length, chars_min)
        shown[name] = name if len(name) <= kept + 1 else f"{name[:kept]}{ELLIPSIS}"
    return shown


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _aligned(spans: Sequence[Span], widths: Sequence[int], is_number: Sequence[bool]) -> Line:
    """Return a row as a line."""
    line: list[Span] = []
    for (text, style), width, is_right in zip(spans, widths, is_number, strict=True):
        space = " " * (width - _width(text))
        line.append((f"{space}{text}" if is_right else f"{text}{space}", style))
        line.append((_GAP, ""))
    text, style = line[-2]
    return (*line[:-2], (text.rstrip(), style))


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(each)
        else 2
        if unicodedata.east_asian_width(each) in _WIDE
        else 1
        for each in text
    )


def _span(cell: Cell) -> Span:
    """Return a cell as a safe text and a style."""
    text, style = (cell, "") if isinstance(cell, str) else cell
    return escaped(text), style
