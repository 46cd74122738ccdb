"""Copy the live database into one new file, while it lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import apsw

from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import BACKUP_STEP_PAGES
from pi_workflows.store.connection import open_to_verify
from pi_workflows.store.content import Documents
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.driver import connect
from pi_workflows.store.errors import translate
from pi_workflows.store.publish import (
    check_new,
    disk_error,
    open_directory,
    path_of,
    publish,
    refused,
    temporary_file,
)
from pi_workflows.store.shape import check_shape
from pi_workflows.store.snapshot import Snapshot, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from pi_workflows.store.database import Store

_SIDECARS: Final = ("", "-wal", "-shm", "-journal")
# Offsets 18 and 19 of the header: rollback journal for writers and readers (SQLite's file format).
_FORMAT_OFFSET: Final = 18
_ROLLBACK_FORMAT: Final = b"\x01\x01"
_PREFIX: Final = ".state-backup-"
_FORCE = True


def backup(store: Store, destination: Path) -> int:
    """Write a verified copy of the live database to a new file.

    Args:
        store: The live database; its thread runs this.
        destination: Absolute; nothing has that name.

    Returns:
        Its length in bytes. Its mode is 0600, and nothing lies or will lie beside it.

    Raises:
        PayloadInvalid: The destination is relative (`notAbsolute`), exists (`targetExists`), is the
            live database or a file of it (`targetLive`), or its directory does not exist
            (`directoryMissing`). Nothing was written.
        Corrupt: The live database or the copy is damaged; there is no copy.
        Unavailable: The disk is full or failed; there is no copy.
    """
    steps = backup_in_steps(store, destination)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("int", end.value)


def backup_in_steps(store: Store, destination: Path) -> Generator[int, None, int]:
    """Make a backup bit by bit, so that the writer can commit between the steps.

    What is committed between two steps is in the copy: both use the one connection that writes.
    Closing the generator early leaves no copy.

    Args:
        store: As `backup`.
        destination: As `backup`.

    Yields:
        How many pages are left.

    Returns:
        The copy's length in bytes.

    Raises:
        WorkflowsError: As `backup`.
    """
    _check_destination(store.path, destination)
    with store.snapshot() as snapshot:
        _check_sound(snapshot)
    try:
        with (
            open_directory(destination.parent) as directory,
            temporary_file(directory, _PREFIX) as (name, descriptor),
        ):
            yield from _copy(store, path_of(directory, name, descriptor))
            # The copy says that it is in write-ahead mode, as the live file does: whoever opens it,
            # even to read, would leave a log beside it.
            os.pwrite(descriptor, _ROLLBACK_FORMAT, _FORMAT_OFFSET)
            os.fsync(descriptor)
            _verify(path_of(directory, name, descriptor))
            publish(directory, name, descriptor, destination.name)
            return os.fstat(descriptor).st_size
    except FileExistsError as error:
        raise refused(destination, "targetExists", "exists already") from error
    except OSError as error:
        raise disk_error(error) from error
    except apsw.Error as error:
        raise translate(error) from error


def _check_destination(live: Path, destination: Path) -> None:
    """Refuse a destination before anything is read or written."""
    names = {live.name + suffix for suffix in _SIDECARS}
    is_beside = destination.parent.is_dir() and destination.parent.samefile(live.parent)
    if destination.is_absolute() and is_beside and destination.name in names:
        raise refused(destination, "targetLive", "is the live database's or a file's of it")
    check_new(destination)


def _copy(store: Store, path: Path) -> Generator[int]:
    """Copy the pages of the live database into an empty file; no other file is made.

    Raises:
        apsw.Error: A page could not be read or written.
    """
    target = connect(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        target.pragma("journal_mode", "OFF")
        target.pragma("synchronous", "OFF")
        copy = target.backup("main", store.writer.connection, "main")
        try:
            while not copy.step(BACKUP_STEP_PAGES):
                yield copy.remaining
        finally:
            copy.finish()
    finally:
        target.close(_FORCE)


def _verify(path: Path) -> None:
    """Read the copy as a stranger would.

    Raises:
        Incompatible: It is not our database.
        Corrupt: It is damaged.
    """
    connection = open_to_verify(path, immutable=True)
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
