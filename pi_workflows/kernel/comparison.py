"""Two databases side by side.

Every row that the log reproduces, column by column, byte for byte. Values (`blobs`) are not
compared: a replay copies each value that an event names from the database itself and refuses one
that is not what its digest says, so that a comparison could find nothing more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias, cast

from pi_workflows.base.sql import Row, SqlValue, Statement, load, plain
from pi_workflows.kernel.progress import counted
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "comparison.sql")
Key: TypeAlias = tuple[str, ...]

# The arguments of a function, which hold commas of their own.
_CALLS: Final = re.compile(r"\([^()]*\)")
ROWS_MAX: Final = 20
"""Rows of one table that are named; a database that differs in more differs enough."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not the same on both sides.

    Attributes:
        table: Its table.
        left: The row as it stands; None when it is missing.
        right: The row as the log gives it; None when the log gives none.
    """

    table: str
    left: Row | None
    right: Row | None

    @property
    def key(self) -> dict[str, SqlValue]:
        """What identifies the row: the columns of the key with their values."""
        statement = SQL[self.table]
        row = self.left or self.right or ()
        return dict(zip(selected_columns(statement)[: _key_width(statement)], row, strict=False))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that differ; every one of a row that is missing on one side."""
        names = selected_columns(SQL[self.table])
        if self.left is None or self.right is None:
            return names
        values = zip(names, self.left, self.right, strict=True)
        return tuple(name for name, here, there in values if here != there)

    def values(self, row: Row | None) -> dict[str, SqlValue]:
        """Return a row's values by column; none of a row that is missing."""
        return dict(zip(selected_columns(SQL[self.table]), row or (), strict=False))


def compare(
    left: Snapshot,
    right: Snapshot,
    *,
    rows_max: int = ROWS_MAX,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Difference]:
    """Compare every table that the log reproduces (decision on comparison).

    Args:
        left: The database as it stands.
        right: The database as its log gives it.
        rows_max: How many differing rows of each table are named.
        progress: Called with the rows of a table read so far, at least each 64.

    Returns:
        The rows that differ, table by table in the order of their keys; none when the two are
        identical.
    """
    found: list[Difference] = []
    for statement in SQL.values():
        found.extend(islice(differences(left, right, statement, progress), rows_max))
    return found


def differences(
    left: Snapshot,
    right: Snapshot,
    statement: Statement,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[Difference]:
    """Compare one table.

    Args:
        left: As `compare`.
        right: As `compare`.
        statement: One of `comparison.sql`, which is called as its table.
        progress: As `compare`.

    Yields:
        Every row that differs, in the order of the keys.
    """

    def rows(side: Snapshot) -> Iterator[Row]:
        return counted(side.each(plain, statement), progress)

    if _digest(rows(left)) != _digest(rows(right)):
        yield from _differing(statement, rows(left), rows(right))


def _digest(rows: Iterator[Row]) -> bytes:
    """Return SHA-256 over a table's rows, no two of which are written alike.

    What Python writes of a value tells its type, has an end of its own, and holds no line break.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(f"{row!r}\n".encode())
    return digest.digest()


def _differing(
    statement: Statement, lefts: Iterator[Row], rights: Iterator[Row]
) -> Iterator[Difference]:
    """Yield the rows of one table that are not the same on both sides, in the order of keys."""
    table, width = statement.name, _key_width(statement)
    here, there = next(lefts, None), next(rights, None)
    while here is not None or there is not None:
        order = _order(here, there, width)
        if here != there:
            yield Difference(table, here if order <= 0 else None, there if order >= 0 else None)
        here = next(lefts, None) if order <= 0 else here
        there = next(rights, None) if order >= 0 else there


def _key_width(statement: Statement) -> int:
    """Return how many columns the key has, which are a statement's first ones."""
    return statement.text.rpartition("ORDER BY")[2].count(",") + 1


def selected_columns(statement: Statement) -> tuple[str, ...]:
    """Return the names of the columns that a statement selects; of an expression the one after AS.

    Args:
        statement: One whose FROM begins a line.
    """
    listed = _CALLS.sub("", statement.text.partition("\nFROM ")[0])
    return tuple(column.split()[-1] for column in listed.split(","))


def _order(left: Row | None, right: Row | None, width: int) -> int:
    """Return which of two rows has the smaller key.

    -1 the left, 1 the right, 0 both have the same.
    """
    if left is None or right is None:
        return 1 if left is None else -1
    # A key column has one type throughout, whose order in Python is SQLite's.
    here, there = cast("Key", left[:width]), cast("Key", right[:width])
    return (here > there) - (here < there)
