"""How the live file is opened: which switches each connection gets, and that they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.base.errors import Incompatible
from pi_workflows.base.limits import (
    BUSY_MS,
    JOURNAL_SIZE_BYTES,
    PAGE_CACHE_BYTES,
    STATEMENTS_PREPARED_MAX,
)
from pi_workflows.store.descriptor import connect_descriptor
from pi_workflows.store.driver import connect
from pi_workflows.store.guard import authorize

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.store.driver import Connection

# The oldest library without the bug that lost committed data when a log was reset.
SQLITE_VERSION_MIN: Final = (3, 51, 3)
# Takes the file for this process alone, and needs no shared-memory file.
_LIVE_VFS: Final = "unix-excl"
_KIB: Final = 1_024


def check_library(version: str | None = None) -> None:
    """Refuse to work with a SQLite that may lose data.

    Args:
        version: Of the library; the one that is loaded when None.

    Raises:
        Incompatible: It is older than 3.51.3 (`sqliteTooOld`).
    """
    found = apsw.sqlite_lib_version() if version is None else version
    if tuple(int(part) for part in found.split(".")) < SQLITE_VERSION_MIN:
        needed = ".".join(str(part) for part in SQLITE_VERSION_MIN)
        raise Incompatible(
            f"SQLite {found} may lose data; {needed} or newer is needed.",
            code="sqliteTooOld",
            hint="Upgrade apsw.",
        )


def open_to_verify(path: Path, *, immutable: bool) -> Connection:
    """Open a file that may be anybody's, so that neither it nor its log changes.

    Args:
        path: Absolute, without symbolic links.
        immutable: Nobody has it open and nothing lies beside it: read the file alone and take no
            lock. Otherwise its log is read too, which may leave a `-shm` file.

    Returns:
        A connection that only reads; whoever opens it closes it.

    Raises:
        apsw.Error: SQLite could not open it.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
    if immutable:
        connection = connect(f"{path.as_uri()}?immutable=1", flags=flags | apsw.SQLITE_OPEN_URI)
    else:
        connection = connect(str(path), flags=flags, vfs=_LIVE_VFS)
    _harden(connection, is_spilling=True)
    _set(connection, "query_only", "ON", 1)
    return connection


def open_descriptor(descriptor: int) -> Connection:
    """Open the database in an open file that nothing lies beside and nobody writes.

    Args:
        descriptor: The file; it outlives the connection.

    Returns:
        A connection that only reads; whoever opens it closes it.

    Raises:
        apsw.Error: SQLite could not open it.
    """
    connection = connect_descriptor(descriptor, is_read_only=True)
    _harden(connection, is_spilling=True)
    _set(connection, "query_only", "ON", 1)
    return connection


def open_writer(path: Path) -> Connection:
    """Open the live file for writing; it is known to be ours.

    Args:
        path: Absolute, without symbolic links.

    Returns:
        The one connection that writes, in write-ahead mode, every switch checked, guarded by
        `guard.authorize`.

    Raises:
        apsw.Error: SQLite could not open it; BusyError when another process has it.
    """
    connection = connect(
        str(path),
        flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW,
        vfs=_LIVE_VFS,
        statements_cached=STATEMENTS_PREPARED_MAX,
    )
    try:
        _harden(connection)
        if connection.pragma("journal_mode") != "wal":
            # Writing the mode into the header is a transaction: its journal stays off the disk,
            # where a crash would leave one that a later start cannot tell from a stranger's.
            _set(connection, "journal_mode", "MEMORY", "memory")
        _set(connection, "journal_mode", "WAL", "wal")
        connection.wal_autocheckpoint(0)
        _set(connection, "journal_size_limit", JOURNAL_SIZE_BYTES, JOURNAL_SIZE_BYTES)
        _set(connection, "synchronous", "FULL", 2)
        _set(connection, "foreign_keys", "ON", 1)
        # The first read in write-ahead mode takes the file for this process, until it closes it.
        connection.pragma("schema_version")
        connection.authorizer = authorize
    except BaseException:
        connection.close(True)  # noqa: FBT003 - apsw's own
        raise
    return connection


def open_reader(path: Path, *, is_spilling: bool = False) -> Connection:
    """Open the live file for reading, in the process that writes it.

    Args:
        path: Absolute, without symbolic links.
        is_spilling: For a verification, whose statements sort whole tables: in a file without a
            name, not in memory.

    Returns:
        A connection that only reads. Its descriptor could write: for one that cannot, SQLite asks
        the system for a shared lock, which would replace this process's exclusive one.

    Raises:
        apsw.Error: SQLite could not open it.
    """
    connection = connect(
        str(path),
        flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW,
        vfs=_LIVE_VFS,
        statements_cached=STATEMENTS_PREPARED_MAX,
    )
    _harden(connection, is_spilling=is_spilling)
    _set(connection, "query_only", "ON", 1)
    return connection


def open_scratch(name: str) -> Connection:
    """Open an empty database for a rebuild: as strict as the live one, and not durable.

    Args:
        name: `:memory:`, or the path of an empty file of ours.

    Returns:
        A connection that reads and writes; its schema is still to be made.
    """
    return _loosened(connect(name, statements_cached=STATEMENTS_PREPARED_MAX))


def open_new(descriptor: int) -> Connection:
    """Open an empty file of ours that is filled and then published, as `open_scratch`.

    Args:
        descriptor: The file, open for reading and writing.

    Returns:
        A connection that reads and writes; its schema is still to be made.
    """
    return _loosened(connect_descriptor(descriptor, is_read_only=False))


def _loosened(connection: Connection) -> Connection:
    """Prepare a database that nobody needs after a crash."""
    _harden(connection)
    _set(connection, "journal_mode", "MEMORY", "memory")
    _set(connection, "synchronous", "OFF", 0)
    _set(connection, "foreign_keys", "ON", 1)
    return connection


def leave_wal(connection: Connection) -> None:
    """Turn the live file into one that needs nothing beside it; no reader is open.

    Args:
        connection: The writer, after a complete checkpoint.

    Raises:
        apsw.Error: The disk failed, or somebody still reads.
    """
    connection.authorizer = None
    # As in `open_writer`: the header changes in one sector, and no journal is left by a crash.
    _set(connection, "journal_mode", "MEMORY", "memory")


def _harden(connection: Connection, *, is_spilling: bool = False) -> None:
    """Take away what no database of ours needs.

    Args:
        connection: Just opened.
        is_spilling: Whether what a statement sorts may go to a file, which has no name: one that
            reads whole tables must not need memory for them.
    """
    connection.set_busy_timeout(BUSY_MS)
    # Closing must not write: a crash is closed too, and an orderly stop checkpoints by itself.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    # One plan a statement: otherwise SQLite looks at the values bound to it, and prepares it anew
    # whenever they are others.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("mmap_size", 0)
    _set(connection, "temp_store", *(("FILE", 1) if is_spilling else ("MEMORY", 2)))
    _set(connection, "cache_size", -PAGE_CACHE_BYTES // _KIB, -PAGE_CACHE_BYTES // _KIB)


def _set(connection: Connection, name: str, value: str | int, expected: str | int) -> None:
    """Set a PRAGMA and see that it holds: SQLite ignores what it does not know or cannot do."""
    connection.pragma(name, value)
    found = connection.pragma(name)
    assert found == expected, f"{name} is {found!r}, not {expected!r}"
