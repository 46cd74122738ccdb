"""A fresh database with our schema that a rebuild fills, on its way to nobody or into a file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from pi_workflows.base.sql import load
from pi_workflows.store.connection import check_library, open_scratch
from pi_workflows.store.content import Documents
from pi_workflows.store.errors import translate
from pi_workflows.store.guard import authorize
from pi_workflows.store.shape import create_schema
from pi_workflows.store.snapshot import snapshot_of
from pi_workflows.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pi_workflows.store.driver import Connection
    from pi_workflows.store.snapshot import Snapshot
    from pi_workflows.store.transaction import Transaction

_SQL = load(__package__, "scratch.sql")
_FORCE = True


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

    def copy_to(self, other: Scratch) -> None:
        """Overwrite another scratch database with what stands in this one now.

        Raises:
            Unavailable: The disk is full or failed.
        """
        try:
            copy = other.connection.backup("main", self.connection, "main")
            try:
                copy.step(-1)
            finally:
                copy.finish()
        except apsw.Error as error:
            raise translate(error) from error

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
    """Make a database for a rebuild that nobody keeps.

    Args:
        path: Where it lies, beside what it is compared with; nothing has that name, and it has none
            either from then on. None keeps it in memory.

    Returns:
        The empty database, for as long as the body runs.

    Raises:
        FileExistsError: Something has that name.
        Unavailable: The disk is full or failed.
    """
    check_library()
    try:
        connection = _open_nameless(path)
        try:
            create_schema(connection, now_ms=0, app_version="")
            connection.authorizer = authorize
            yield Scratch(connection)
        finally:
            connection.close(_FORCE)
    except apsw.Error as error:
        raise translate(error) from error


def _open_nameless(path: Path | None) -> Connection:
    """Open an empty file of ours and take its name away: however we end, nothing is left of it."""
    if path is None:
        return open_scratch(":memory:")
    is_ours = True
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
        return open_scratch(str(path))
    except FileExistsError:
        is_ours = False
        raise
    finally:
        if is_ours:
            path.unlink(missing_ok=True)
