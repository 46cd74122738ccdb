"""Copy the live database into one new file, while it lives."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.base.errors import Corrupt, PayloadInvalid
from pi_workflows.base.limits import BACKUP_STEP_PAGES
from pi_workflows.store.connection import open_descriptor
from pi_workflows.store.content import Documents
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.descriptor import connect_descriptor
from pi_workflows.store.errors import translate
from pi_workflows.store.publish import (
    check_new,
    open_directory,
    publish,
    refused,
    target_error,
    temporary_file,
)
from pi_workflows.store.shape import check_shape
from pi_workflows.store.snapshot import Snapshot, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pi_workflows.store.database import Store

_SIDECARS: Final = ("", "-wal", "-shm", "-journal")
# Offsets 18 and 19 of the header: rollback journal for writers and readers (SQLite's file format).
_FORMAT_OFFSET: Final = 18
_ROLLBACK_FORMAT: Final = b"\x01\x01"
_PREFIX: Final = ".state-backup-"
_FORCE = True


def backup(store: Store, destination: Path) -> int:
    """Write a verified copy of the live database to a new file, in one go.

    Args:
        store: The live database; its thread runs this.
        destination: Absolute; nothing has that name.

    Returns:
        Its length in bytes. Its mode is 0600, and nothing lies or will lie beside it.

    Raises:
        PayloadInvalid: As `check_source`; nothing was written.
        Corrupt: The live database or the copy is damaged; there is no copy.
        Unavailable: The disk is full or failed; there is no copy.
    """
    check_source(store, destination)
    with copying(store, destination) as copy:
        while copy.step():
            pass
        return copy.complete()


def check_source(store: Store, destination: Path) -> None:
    """Refuse to make a backup there, or of what is damaged, before anything is written.

    Args:
        store: The live database; any thread runs this, on a connection of its own.
        destination: As `backup`.

    Raises:
        PayloadInvalid: The destination is relative (`notAbsolute`), exists (`targetExists`), is the
            live database or a file of it (`targetLive`), cannot be used (`targetUnusable`), or its
            directory does not exist (`directoryMissing`).
        Corrupt: The database is damaged.
        Unavailable: The disk failed.
    """
    if _is_live(store.path, destination):
        raise _live(destination)
    check_new(destination)
    with store.verification() as snapshot:
        _check_sound(snapshot)


@contextmanager
def copying(store: Store, destination: Path) -> Generator[Copy]:
    """Copy bit by bit, so that the writer can commit between the steps.

    Args:
        store: The live database; its thread begins and ends this.
        destination: As `backup`; `check_source` has looked at it.

    Returns:
        The copy, which is gone when the body ends before it is complete.

    Raises:
        PayloadInvalid: The destination cannot be used.
        Unavailable: The disk is full or failed.
    """
    with _translated(destination), open_directory(destination.parent) as directory:
        # The path may lead elsewhere by now; this directory is the one that is written to.
        if _is_beside(store.path, destination, os.fstat(directory)):
            raise _live(destination)
        with temporary_file(directory, _PREFIX) as (name, descriptor):
            copy = Copy(store, destination, directory, name, descriptor)
            try:
                yield copy
            finally:
                copy.close()


class Copy:
    """A copy that is under way: first every `step`, then `complete`."""

    def __init__(
        self, store: Store, destination: Path, directory: int, name: str, descriptor: int
    ) -> None:
        """Begin; use `copying`."""
        self._destination = destination
        self._directory = directory
        self._name = name
        self._descriptor = descriptor
        self._target = connect_descriptor(descriptor, is_read_only=False)
        self._target.pragma("journal_mode", "OFF")
        self._target.pragma("synchronous", "OFF")
        self._pages = self._target.backup("main", store.writer.connection, "main")

    def step(self) -> int:
        """Copy some pages; the store's thread runs this, between two transactions.

        What is committed between two steps is in the copy: both use the one connection that writes.

        Returns:
            How many pages are left; none ends the copying.

        Raises:
            Corrupt: A page cannot be read.
            Unavailable: The disk is full or failed.
        """
        with _translated(self._destination):
            if self._pages.step(BACKUP_STEP_PAGES):
                return 0
            return self._pages.remaining

    def complete(self) -> int:
        """Put the copy on the disk, verify it, and give it its name; any thread may run this.

        Returns:
            Its length in bytes.

        Raises:
            PayloadInvalid: Something got the name meanwhile (`targetExists`).
            Corrupt: The copy is damaged.
            Unavailable: The disk is full or failed.
        """
        descriptor = self._descriptor
        with _translated(self._destination):
            # The copy says that it is in write-ahead mode, as the live file does: whoever opens it,
            # even to read, would leave a log beside it.
            os.pwrite(descriptor, _ROLLBACK_FORMAT, _FORMAT_OFFSET)
            os.fsync(descriptor)
            _verify(descriptor)
            file_bytes = os.fstat(descriptor).st_size
            publish(self._directory, self._name, descriptor, self._destination.name)
            return file_bytes

    def close(self) -> None:
        """Let go of the live database; nothing hangs on what SQLite says to that."""
        with suppress(apsw.Error):
            self._pages.finish()
        self._target.close(_FORCE)


def _live(destination: Path) -> PayloadInvalid:
    """Return the refusal of a destination that is a file of the live database."""
    return refused(destination, "targetLive", "is the live database's or a file's of it")


def _is_live(live: Path, destination: Path) -> bool:
    """Return whether a destination is a file of the live database, by whatever way to it."""
    try:
        return destination.is_absolute() and _is_beside(
            live, destination, destination.parent.stat()
        )
    except (OSError, ValueError):
        return False


def _is_beside(live: Path, destination: Path, directory: os.stat_result) -> bool:
    """Return whether a name in a directory is one of the live database's own."""
    names = {live.name + suffix for suffix in _SIDECARS}
    return destination.name in names and os.path.samestat(directory, live.parent.stat())


def _verify(descriptor: int) -> None:
    """Read the copy as a stranger would.

    Raises:
        Incompatible: It is not our database.
        Corrupt: It is damaged.
        apsw.Error: SQLite could not read it.
    """
    connection = open_descriptor(descriptor)
    try:
        check_shape(connection)
        with snapshot_of(Cursors(connection), Documents()) as snapshot:
            _check_sound(snapshot)
    finally:
        connection.close(_FORCE)


def _check_sound(snapshot: Snapshot) -> None:
    """Refuse to copy damage, and to call a damaged copy one."""
    for line in snapshot.integrity():
        raise Corrupt(f"The database is damaged; there is no backup: {line}")
    for violation in snapshot.foreign_keys():
        raise Corrupt(
            f"A row of {violation.table} names a missing row of {violation.parent}; "
            "there is no backup."
        )


@contextmanager
def _translated(destination: Path) -> Generator[None]:
    """Say what it means that the system or SQLite refused."""
    try:
        yield
    except OSError as error:
        raise target_error(destination, error) from error
    except apsw.Error as error:
        raise translate(error) from error
