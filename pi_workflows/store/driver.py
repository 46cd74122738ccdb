"""The part of apsw that this package uses, with exact types.

apsw's own types name `collections.abc.Buffer`, which Python 3.11 does not have; what SQLite gives
back is always `bytes`. Everything is opened through `connect`, so that nothing else has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias, cast

import apsw

from pi_workflows.base.sql import Row, SqlValue

Values: TypeAlias = Mapping[str, SqlValue] | Sequence[SqlValue]
Authorizer: TypeAlias = Callable[[int, str | None, str | None, str | None, str | None], int]


class Cursor(Protocol):
    """Runs one statement at a time and reads its rows."""

    exec_trace: Callable[[Cursor, str, Values | None], bool] | None

    def execute(
        self, statements: str, bindings: Values | None = None, /, *, can_cache: bool = True
    ) -> Cursor:
        """Start a statement; its rows are read from the result."""
        ...

    def fetchall(self) -> list[Row]:
        """Return every row that is left, which ends the statement."""
        ...

    def __iter__(self) -> Iterator[Row]:
        """Return the rows one by one."""
        ...

    @property
    def get(self) -> SqlValue | Row | list[Row]:
        """Everything that is left: one value alone, one row, or many."""
        ...

    @property
    def is_readonly(self) -> bool:
        """Whether the statement leaves the database as it is; true of BEGIN and COMMIT too."""
        ...


class Backup(Protocol):
    """A copy that is under way."""

    def step(self, npages: int, /) -> bool:
        """Copy some pages; -1 copies all that are left. True at the end."""
        ...

    def finish(self) -> None:
        """End the copy, whether or not it is complete."""
        ...

    @property
    def remaining(self) -> int:
        """Pages that were left to copy after the last step."""
        ...


class Connection(Protocol):
    """One open database."""

    authorizer: Authorizer | None

    def execute(
        self, statements: str, bindings: Values | None = None, /, *, can_cache: bool = True
    ) -> Cursor:
        """Start a statement on a cursor of its own."""
        ...

    def pragma(self, name: str, value: SqlValue = None, /) -> object:
        """Set a PRAGMA, or read it when no value is given."""
        ...

    def cursor(self) -> Cursor:
        """Return a cursor to be used again and again."""
        ...

    def close(self, force: bool = False, /) -> None:  # noqa: FBT001, FBT002 - apsw's own
        """Close; a failure is not reported when forced."""
        ...

    @property
    def filename(self) -> str:
        """The file that is open; empty of a database in memory."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def changes(self) -> int:
        """Return how many rows the last INSERT, UPDATE or DELETE changed by itself."""
        ...

    def status(self, op: int, /) -> tuple[int, int]:
        """Return a counter of this connection, current and highest."""
        ...

    def config(self, op: int, value: int, /) -> int:
        """Set a switch of this connection; return its value."""
        ...

    def set_busy_timeout(self, milliseconds: int, /) -> None:
        """Wait this long for a lock."""
        ...

    def wal_autocheckpoint(self, n: int, /) -> None:
        """Checkpoint after so many frames; 0 is never."""
        ...

    def wal_checkpoint(self, dbname: str, mode: int, /) -> tuple[int, int]:
        """Checkpoint; return the frames of the log and how many of them are in the database."""
        ...

    def file_control(self, dbname: str, op: int, pointer: int, /) -> bool:
        """Ask the file system layer; false when it does not know the question."""
        ...

    def cache_stats(self) -> Mapping[str, int]:
        """Return how the cache of prepared statements fares."""
        ...

    def serialize(self, name: str, /) -> bytes:
        """Return the database as the bytes of its file."""
        ...

    def backup(
        self, databasename: str, sourceconnection: Connection, sourcedatabasename: str, /
    ) -> Backup:
        """Begin to overwrite this database with another one."""
        ...

    def set_progress_handler(
        self, callback: Callable[[], bool] | None, nsteps: int = 100, /
    ) -> None:
        """Ask after so many steps of SQLite whether to end the statement; None asks no more."""
        ...

    def trace_v2(
        self,
        mask: int,
        callback: Callable[[Mapping[str, object]], None] | None = None,
        /,
        *,
        id: object = None,  # noqa: A002 - apsw's own
    ) -> None:
        """Report events of running statements; None ends it."""
        ...


def connect(
    name: str, *, flags: int | None = None, vfs: str | None = None, statements_cached: int = 100
) -> Connection:
    """Open a database.

    Args:
        name: A path, `:memory:`, or a URI when the flags allow one.
        flags: `SQLITE_OPEN_*`; read-write and create when None.
        vfs: The file system layer; SQLite's own default when None.
        statements_cached: How many prepared statements the connection keeps.

    Returns:
        The connection; whoever opens it closes it.

    Raises:
        apsw.Error: SQLite could not open it.
    """
    connection = apsw.Connection(
        name,
        flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if flags is None else flags,
        vfs=vfs,
        statementcachesize=statements_cached,
    )
    return cast("Connection", connection)
