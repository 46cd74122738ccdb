"""Open the live file: decide that it is ours before anything may change it, then open it for good.

The order is the state contract's, section 7, "Live open". A file that is refused keeps its bytes,
and so does its write-ahead log.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.store.connection import open_reader, open_to_verify, open_writer
from pi_workflows.store.content import Documents
from pi_workflows.store.creation import create_file, remove_leftovers
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.errors import translate
from pi_workflows.store.header import read_header
from pi_workflows.store.log import check_last_event
from pi_workflows.store.reading import Reading
from pi_workflows.store.shape import APPLICATION_ID, USER_VERSION, check_shape, refusal

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.store.driver import Connection

FILE_NAME: Final = "state.sqlite"
_PRIVATE: Final = 0o600
_FORCE = True


def open_live(
    directory: Path, *, now_ms: int, app_version: str
) -> tuple[Path, Connection, Connection]:
    """Create or open the database of a state directory.

    Args:
        directory: As `secure_directory` returned it; the caller holds the server's lock.
        now_ms: Wall time, for a database that is created.
        app_version: The program's version, for a database that is created.

    Returns:
        The file, the connection that writes, and one that reads. Whoever opens them closes them.

    Raises:
        Incompatible: It is not exactly our database; it and its log are unchanged.
        Corrupt: It is damaged; it and its log are unchanged.
        Unavailable: Another process has it open, or the disk is full or failed.
    """
    path = directory / FILE_NAME
    remove_leftovers(directory)
    if not _exists(path):
        for suffix in ("-wal", "-journal"):
            if _exists(_beside(path, suffix)):
                # SQLite would take a stranger's log for this file's own and replay it.
                raise refusal(f"{FILE_NAME}{suffix} lies there without {FILE_NAME}")
        create_file(path, now_ms=now_ms, app_version=app_version)
    _check_file(path)
    try:
        _check_content(path)
    except apsw.Error as error:
        raise _meaning(error) from error
    path.chmod(_PRIVATE)
    wal = _beside(path, "-wal")
    if _exists(wal):
        wal.chmod(_PRIVATE)
    return _open(path)


def _open(path: Path) -> tuple[Path, Connection, Connection]:
    """Open the file that was accepted."""
    try:
        writer = open_writer(path)
        try:
            reader = open_reader(path)
            try:
                # This process has the file alone and needs no shared memory: what lies there is a
                # leftover.
                _beside(path, "-shm").unlink(missing_ok=True)
            except BaseException:
                reader.close(_FORCE)
                raise
        except BaseException:
            writer.close(_FORCE)
            raise
    except apsw.Error as error:
        raise translate(error) from error
    return path, writer, reader


def _check_file(path: Path) -> None:
    """Refuse what SQLite would follow, share with another name, or read with foreign eyes."""
    for name in (path, _beside(path, "-wal"), _beside(path, "-journal")):
        if not _exists(name):
            continue
        found = name.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise refusal(f"{name.name} is no regular file")
        if found.st_nlink != 1:
            raise refusal(f"{name.name} has {found.st_nlink} names")
        if found.st_uid != os.geteuid():
            raise refusal(f"{name.name} belongs to another user")


def _check_content(path: Path) -> None:
    """Refuse a file whose header, identity or shape is not ours, reading only.

    Raises:
        apsw.Error: SQLite refused to read it.
    """
    wal_bytes = _size(_beside(path, "-wal"))
    header = read_header(path)
    if header is None:
        raise refusal(f"{path.name} is no SQLite database")
    if header.application_id != APPLICATION_ID or header.user_version != USER_VERSION:
        raise refusal("the header names another program or version")
    if wal_bytes and not header.has_wal:
        # An orderly stop leaves a file that needs no log: this one is of another time.
        raise refusal("a write-ahead log lies beside a file that was closed without one")
    shared_memory = _beside(path, "-shm")
    had_shared_memory = _exists(shared_memory)
    immutable = not wal_bytes and not _size(_beside(path, "-journal"))
    connection = open_to_verify(path, immutable=immutable)
    try:
        check_shape(connection)
        check_last_event(Reading(Cursors(connection), Documents()))
    finally:
        connection.close(_FORCE)
        if not had_shared_memory:
            shared_memory.unlink(missing_ok=True)


def _meaning(error: apsw.Error) -> Exception:
    """Return what it means that a file could not be read while it was judged.

    A rollback journal that another program left would have to be played back into the file first:
    SQLite refuses that when it may only read, and so do we.
    """
    if isinstance(error, apsw.NotADBError | apsw.ReadOnlyError | apsw.CantOpenError):
        return refusal(f"SQLite refused to read it: {error}")
    return translate(error)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _exists(path: Path) -> bool:
    """Return whether anything has this name, be it a dangling link."""
    return os.path.lexists(path)


def _size(path: Path) -> int:
    """Return a file's length; 0 when there is none."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
