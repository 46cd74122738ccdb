"""Databases that are not live: one that lies there to be judged, and one that a rebuild fills."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from pi_workflows.base.errors import AuthorityDenied, NotFound, Unavailable
from pi_workflows.base.sql import load
from pi_workflows.store.connection import check_library, open_scratch, open_to_verify
from pi_workflows.store.content import Documents
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.errors import translate
from pi_workflows.store.guard import authorize
from pi_workflows.store.header import read_header
from pi_workflows.store.opening import FILE_NAME
from pi_workflows.store.shape import check_shape, create_schema, refusal
from pi_workflows.store.snapshot import Snapshot, snapshot_of
from pi_workflows.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pi_workflows.store.driver import Connection
    from pi_workflows.store.transaction import Transaction

_SQL = load(__package__, "inactive.sql")
_SIDECARS = ("-wal", "-journal", "-shm")
_FORCE = True


@contextmanager
def open_inactive(file: Path, *, live_directory: Path | None) -> Generator[Snapshot]:
    """Read a database that no server has open: a backup, or what an orderly stop left.

    Nothing is written, not even beside it. Which file is the live one is decided by device and
    inode, so that no link, mount or relative path leads to it (the state contract, section 7).

    Args:
        file: The database, by any path.
        live_directory: The state directory, whose `state.sqlite` is refused; None when there is
            none.

    Returns:
        One moment of it, for as long as the body runs.

    Raises:
        NotFound: There is no such file (`fileMissing`).
        AuthorityDenied: It is the live database (`liveFile`), is no regular file, or files lie
            beside it that belong to it (`notSelfContained`).
        Incompatible: It is not our database.
        Corrupt: It is damaged.
        Unavailable: The disk failed, or the file was replaced meanwhile.
    """
    check_library()
    path = _resolve(file)
    identity = _identity(path)
    if live_directory is not None and identity == _identity(live_directory / FILE_NAME):
        raise AuthorityDenied(
            f"This is the live database: {file}",
            code="liveFile",
            field=str(file),
            hint="Take a backup and look into that: pi-workflows state backup FILE",
        )
    if not path.is_file():
        raise AuthorityDenied(
            f"This is no regular file: {file}", code="notRegularFile", field=str(file)
        )
    for suffix in _SIDECARS:
        if os.path.lexists(f"{path}{suffix}"):
            raise AuthorityDenied(
                f"{path.name}{suffix} lies beside the database, which is not complete without it.",
                code="notSelfContained",
                field=str(file),
                hint="Make a backup with `state backup`, or stop the server in order.",
            )
    try:
        connection = _open_judged(path)
    except apsw.NotADBError as error:
        raise refusal(f"SQLite refused to read it: {error}") from error
    except apsw.Error as error:
        raise translate(error) from error
    try:
        if _identity(path) != identity:
            raise Unavailable("The file was replaced while it was opened.", code="fileReplaced")
        with snapshot_of(Cursors(connection), Documents()) as snapshot:
            yield snapshot
    finally:
        connection.close(_FORCE)


class Scratch:
    """A fresh database with our schema that a rebuild fills and nobody keeps.

    Foreign keys hold as in the live one; nothing survives a crash.
    """

    def __init__(self, connection: Connection) -> None:
        """Take over an open database that has the schema; use `create_scratch`."""
        self._documents = Documents()
        self._writer = Writer(connection, self._documents)

    @property
    def connection(self) -> Connection:
        """The connection, for the store's own modules."""
        return self._writer.connection

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Run a body between BEGIN IMMEDIATE and COMMIT, as `Writer.transaction`."""
        return self._writer.transaction()

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read one moment of it, while no transaction is open."""
        return snapshot_of(self._writer.cursors, self._documents)

    def set_high_water_mark(self, event_seq: int) -> None:
        """Let the next event that is appended have a number above this one.

        Args:
            event_seq: As `log.high_water_mark` of the database that is rebuilt says.
        """
        connection = self._writer.connection
        connection.authorizer = None
        connection.execute(_SQL["delete_mark"].text)
        connection.execute(_SQL["insert_mark"].text, {"event_seq": event_seq})
        connection.authorizer = authorize


@contextmanager
def create_scratch(path: Path | None) -> Generator[Scratch]:
    """Make a database for a rebuild and remove it when the body ends.

    Args:
        path: Where it lies, beside what it is compared with; nothing has that name. None keeps it
            in memory.

    Returns:
        The empty database, for as long as the body runs.

    Raises:
        FileExistsError: Something has that name.
        Unavailable: The disk is full or failed.
    """
    check_library()
    if path is not None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
    try:
        connection = open_scratch(":memory:" if path is None else str(path))
        try:
            create_schema(connection, now_ms=0, app_version="")
            connection.authorizer = authorize
            yield Scratch(connection)
        finally:
            connection.close(_FORCE)
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def _open_judged(path: Path) -> Connection:
    """Open a file that nothing lies beside, and refuse one that is not ours.

    Raises:
        Incompatible: It is not our database.
        apsw.Error: SQLite could not read it.
    """
    if read_header(path) is None:
        raise refusal(f"{path.name} is no SQLite database")
    connection = open_to_verify(path, immutable=True)
    try:
        check_shape(connection)
    except BaseException:
        connection.close(_FORCE)
        raise
    return connection


def _resolve(file: Path) -> Path:
    """Return a file's path without symbolic links."""
    try:
        return file.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise NotFound(
            f"There is no such file: {file}", code="fileMissing", field=str(file)
        ) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file a path leads to, without opening it; None when it leads nowhere."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
