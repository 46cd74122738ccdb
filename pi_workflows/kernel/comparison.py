"""Two databases side by side.

Every row that the log reproduces, column by column, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from pi_workflows.base.sql import SqlValue, Statement, load
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "comparison.sql")
Row: TypeAlias = tuple[SqlValue, ...]
Key: TypeAlias = tuple[str, ...]

# The arguments of a function, which hold commas of their own.
_CALLS: Final = re.compile(r"\([^()]*\)")
# Rows of one table that are named; a database that differs in more differs enough.
_DIFFERENCES_MAX: Final = 20


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


def compare(left: Snapshot, right: Snapshot) -> list[Difference]:
    """Compare every table that the log reproduces (decision on comparison).

    Args:
        left: The database as it stands.
        right: The database as its log gives it.

    Returns:
        The rows that differ, at most 20 a table; none when the two are identical.
    """
    differences: list[Difference] = []
    for table, statement in SQL.items():
        if _digest(left, statement) != _digest(right, statement):
            differences.extend(_differing(table, statement, left, right))
    return differences


def _digest(side: Snapshot, statement: Statement) -> bytes:
    """Return SHA-256 over a table's rows, each value with its type and its length."""
    digest = hashlib.sha256()
    for row in side.each(_row, statement):
        for value in row:
            digest.update(_framed(value))
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
    table: str, statement: Statement, left: Snapshot, right: Snapshot
) -> Iterator[Difference]:
    """Yield the rows of one table that are not the same on both sides.

    At most `_DIFFERENCES_MAX`.
    """
    width = _key_width(statement)
    found = 0
    lefts, rights = left.each(_row, statement), right.each(_row, statement)
    here, there = next(lefts, None), next(rights, None)
    while (here is not None or there is not None) and found < _DIFFERENCES_MAX:
        order = _order(here, there, width)
        if here != there:
            found += 1
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
