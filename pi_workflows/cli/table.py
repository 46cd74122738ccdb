"""Lists as tables: aligned and coloured on a terminal, aligned and whole in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.output import Output

Cell: TypeAlias = str | tuple[str, str]
"""A text, or a text with its style."""

_GAP: Final = "  "


def write_table(
    output: Output,
    headings: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    numbers: frozenset[str] = frozenset(),
) -> None:
    """Write rows under their headings to standard output.

    Args:
        output: Where to.
        headings: One for each column. On a terminal the last column loses its end when the window
            is narrow.
        rows: Their cells; every text is escaped here.
        numbers: The headings of columns that are aligned to the right.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    if output.is_terminal:
        _write_styled(output, headings, cells, numbers)
        return
    titles = [(heading.upper(), "") for heading in headings]
    widths = [max(len(row[at][0]) for row in (titles, *cells)) for at in range(len(headings))]
    for row in (titles, *cells):
        texts = [
            text.rjust(width) if heading in numbers else text.ljust(width)
            for (text, _), width, heading in zip(row, widths, headings, strict=True)
        ]
        output.line(_GAP.join(texts).rstrip())


def _write_styled(
    output: Output,
    headings: Sequence[str],
    rows: Sequence[Sequence[tuple[str, str]]],
    numbers: frozenset[str],
) -> None:
    """Write the table for a person."""
    # A list in a pipe is written without it.
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for heading in headings:
        is_last = heading == headings[-1]
        table.add_column(
            heading.upper(),
            justify="right" if heading in numbers else "left",
            no_wrap=True,
            overflow="ellipsis",
            # What identifies a row is never cut; its description may be.
            min_width=8
            if is_last
            else max([len(heading), *(len(row[headings.index(heading)][0]) for row in rows)]),
        )
    for row in rows:
        table.add_row(*(Text(text, style=style) for text, style in row))
    output.console().print(table)


def _cell(cell: Cell) -> tuple[str, str]:
    """Return a cell as a safe text and a style."""
    text, style = (cell, "") if isinstance(cell, str) else cell
    return escaped(text), style
