"""A database whose n-th statement fails, as SQLite itself lets a statement fail."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import apsw

from pi_workflows.base.sql import Statement, plain
from pi_workflows.store.database import Store

_TABLES: Final = Statement(
    "tables", "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
)
COMMIT: Final = "COMMIT"


@dataclass(slots=True)
class Fault:
    """What became of a fault that was planted.

    Attributes:
        failing: Text of the statement that failed; None when there were fewer.
        statements: How many statements began.
    """

    failing: str | None = None
    statements: int = 0
    is_due: bool = False


@contextmanager
def fault_at(store: Store, which: int | str) -> Generator[Fault]:
    """Let a statement of the writing connection end with a failing disk.

    The statement is interrupted at its first step: SQLite rolls the transaction back by itself
    when it was a write, and leaves it open when it was a read or ends a savepoint.

    Args:
        store: The open database.
        which: Its number from 1, where BEGIN and SAVEPOINT count and COMMIT never fails; or its
            text.
    """
    fault = Fault()
    connection = store.writer.connection

    def began(event: Mapping[str, object]) -> None:
        fault.statements += 1
        text = str(event["sql"])
        is_next = fault.statements == which and text != COMMIT
        if is_next or text == which:
            fault.failing, fault.is_due = text, True

    def step() -> bool:
        if fault.is_due:
            fault.is_due = False
            raise apsw.IOError
        return False

    connection.trace_v2(apsw.SQLITE_TRACE_STMT, began)
    connection.set_progress_handler(step, 1)
    try:
        yield fault
    finally:
        connection.set_progress_handler(None)
        connection.trace_v2(0)


def digests(store: Store) -> dict[str, str]:
    """Return a digest of every table's committed rows, the process-local ones too."""
    with store.snapshot() as read:
        tables = read.all(str, _TABLES)
        return {table: _digest(list(read.each(plain, _everything(table)))) for table in tables}


def _everything(table: str) -> Statement:
    """Return the query for every row of a table."""
    return Statement(table, f"SELECT * FROM {table}")  # noqa: S608 - a test's own


def _digest(rows: list[tuple[object, ...]]) -> str:
    """Return a digest of rows in whatever order they come."""
    return hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()
