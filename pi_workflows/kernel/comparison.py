"""Two databases side by side.

Every row that the log reproduces, column by column, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias, cast

from pi_workflows.base.sql import SqlValue, Statement, load
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "comparison.sql")
Row: TypeAlias = tuple[SqlValue, ...]
Key: TypeAlias = tuple[str, ...]

# The arguments of a function, which hold commas of their own.
_CALLS: Final = re.compile(r"\([^()]*\)")
ROWS_MAX: Final = 20
"""Rows of one table that are named; a database that differs in more differs enough."""

# Rows between two words about progress.
_STEP_ROWS: Final = 64


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
        return dict(zip(_columns(statement)[: _key_width(statement)], row, strict=False))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that differ; every one of a row that is missing on one side."""
        names = _columns(SQL[self.table])
        if self.left is None or self.right is None:
            return names
        values = zip(names, self.left, self.right, strict=True)
        return tuple(name for name, here, there in values if here != there)

    def values(self, row: Row | None) -> dict[str, SqlValue]:
        """Return a row's values by column; none of a row that is missing."""
        return dict(zip(_columns(SQL[self.table]), row or (), strict=False))


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
        progress: Called with the rows read so far, at least each 64.

    Returns:
        The rows that differ, table by table in the order of their keys; none when the two are
        identical.
    """
    rows = _Counted(progress)
    differences: list[Difference] = []
    for table, statement in SQL.items():
        if _digest(rows.of(left, statement)) != _digest(rows.of(right, statement)):
            sides = rows.of(left, statement), rows.of(right, statement)
            differing = _differing(table, _key_width(statement), *sides)
            differences.extend(islice(differing, rows_max))
    return differences


class _Counted:
    """Reads tables and tells how many rows that were."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress
        self._count = 0

    def of(self, side: Snapshot, statement: Statement) -> Iterator[Row]:
        """Yield the rows of one table."""
        for row in side.each(_row, statement):
            if self._count % _STEP_ROWS == 0:
                self._progress(self._count)
            self._count += 1
            yield row


def _digest(rows: Iterator[Row]) -> bytes:
    """Return SHA-256 over a table's rows, each value with its type and its length."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(b"".join(map(_framed, row)))
    return digest.digest()


def _row(*values: SqlValue) -> Row:
    """Return a row as a plain tuple."""
    return values


def _framed(value: SqlValue) -> bytes:
    """Return a value as bytes that no other value or sequence of values has."""
    match value:
        case None:
            return b"n"
        case bytes():
            return b"b%d:%b" % (len(value), value)
        case str():
            text = value.encode()
            return b"t%d:%b" % (len(text), text)
        case int() | float():
            number = repr(value).encode()
            return b"%b%d:%b" % (b"i" if isinstance(value, int) else b"r", len(number), number)


def _differing(
    table: str, width: int, lefts: Iterator[Row], rights: Iterator[Row]
) -> Iterator[Difference]:
    """Yield the rows of one table that are not the same on both sides, in the order of keys."""
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


def _columns(statement: Statement) -> tuple[str, ...]:
    """Return the names of a statement's columns; of an expression the one after AS."""
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
