"""The live database: one file, one process, one writer."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import apsw

from pi_workflows.store.connection import check_library, leave_wal, open_reader
from pi_workflows.store.content import Documents
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.directory import secure_directory
from pi_workflows.store.errors import translate
from pi_workflows.store.header import sync_file
from pi_workflows.store.opening import open_live
from pi_workflows.store.publish import disk_error, open_directory
from pi_workflows.store.snapshot import Snapshot, snapshot_of
from pi_workflows.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pi_workflows.store.driver import Connection
    from pi_workflows.store.transaction import Transaction

_WAL_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_FORCE = True


class Checkpoint(NamedTuple):
    """What a checkpoint did.

    Attributes:
        frames: Pages in the write-ahead log.
        copied: How many of them are in the database now.
        busy: Whether a reader kept it from finishing.
        wal_bytes: Length of the log's file afterwards.
    """

    frames: int
    copied: int
    busy: bool
    wal_bytes: int


class Store:
    """The live database of one state directory, open in this process and in no other.

    Synchronous; transactions run on the thread that opened it. It holds two connections until
    `close` or `crash`.

    Attributes:
        path: The file, without symbolic links.
        writer: The connection that writes; for this package alone.
        reader: The cursors of the one that reads; for this package alone.
    """

    def __init__(self, path: Path, writer: Connection, reader: Connection) -> None:
        """Take over the connections that `open_live` made; use `open`."""
        self.path = path
        self._documents = Documents()
        self.writer = Writer(writer, self._documents)
        self.reader = Cursors(reader)
        self._wal = path.with_name(f"{path.name}-wal")
        self._found = path.stat()
        self._page_bytes = cast("int", reader.pragma("page_size"))

    @classmethod
    def open(cls, directory: Path, *, now_ms: int, app_version: str) -> Self:
        """Create or open `state.sqlite` in a state directory (the state contract, section 7).

        Args:
            directory: Absolute; created, made private, and its links resolved once. The caller
                holds the server's lock, or nobody else can.
            now_ms: Wall time, milliseconds.
            app_version: The program's version, for people.

        Returns:
            The open store.

        Raises:
            Incompatible: The file is not exactly our database, or the library is too old; nothing
                changed.
            Corrupt: The file is damaged; nothing changed.
            Unavailable: Another process has it open, or the disk is full or failed.
            AuthorityDenied: Others own or may write the directory, or it lies on a network file
                system.
            PayloadInvalid: The directory's path is relative or no directory.
        """
        check_library()
        try:
            path, writer, reader = open_live(
                secure_directory(directory), now_ms=now_ms, app_version=app_version
            )
        except OSError as error:
            raise disk_error(error) from error
        return cls(path, writer, reader)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Run a body between BEGIN IMMEDIATE and COMMIT, as `Writer.transaction`."""
        return self.writer.transaction()

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read one moment of the committed database, that of the first read, while a body runs.

        The body must not wait for anything: a read that lasts keeps the log from shrinking. Reads
        do not nest.
        """
        return snapshot_of(self.reader, self._documents)

    @contextmanager
    def verification(self) -> Generator[Snapshot]:
        """Read one moment on a connection of its own, in any thread, while the writer goes on.

        For verification alone: it may last, and the log grows meanwhile.

        Raises:
            WorkflowsError: As `store.errors.translate`.
        """
        try:
            connection = open_reader(self.path, is_spilling=True)
        except apsw.Error as error:
            raise translate(error) from error
        try:
            with snapshot_of(Cursors(connection), Documents()) as snapshot:
                yield snapshot
        finally:
            connection.close(_FORCE)

    def checkpoint(self, *, truncate: bool = False) -> Checkpoint:
        """Copy committed pages from the log into the database.

        Args:
            truncate: Wait for readers, then shorten the log's file to nothing; otherwise copy what
                can be copied and let the next commit reuse the file.

        Returns:
            What was done; never an exception because somebody reads.

        Raises:
            AssertionError: A transaction is open, or this is another process or thread.
            Unavailable: The disk is full or failed; nothing committed is lost.
        """
        self.writer.check_owner()
        connection = self.writer.connection
        assert not connection.in_transaction, "a checkpoint inside a transaction"
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        busy = False
        try:
            frames, copied = connection.wal_checkpoint("main", mode)
        except (apsw.BusyError, apsw.LockedError):
            busy = True
            frames, copied = self._log_frames()
        except apsw.Error as error:
            raise translate(error) from error
        return Checkpoint(frames, copied, busy or copied < frames, self._wal_file_bytes())

    def wal_bytes(self) -> int:
        """Return the bytes of the log that is in use; 0 when all of it is in the database.

        The file itself may be longer: its space is used again.
        """
        frames, copied = self._log_frames()
        if frames == copied:
            return 0
        return _WAL_HEADER_BYTES + frames * (_FRAME_HEADER_BYTES + self._page_bytes)

    def moved(self) -> bool:
        """Return whether the file was renamed, replaced or removed under us: stop answering."""
        answer = ctypes.c_int(0)
        self.writer.connection.file_control(
            "main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(answer)
        )
        try:
            found: os.stat_result | None = self.path.lstat()
        except OSError:
            found = None
        return (
            answer.value != 0
            or found is None
            or (found.st_dev, found.st_ino) != (self._found.st_dev, self._found.st_ino)
        )

    def close(self) -> None:
        """End in order: one file that holds everything and needs nothing beside it.

        Raises:
            Unavailable: The disk is full or failed. Everything committed is durable in the database
                and its log, as after `crash`.
        """
        self.writer.check_owner()
        connection = self.writer.connection
        assert not connection.in_transaction, "a close inside a transaction"
        self.reader.connection.close()
        try:
            connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
            if self._wal.exists():
                # The empty log must be on the disk before the header says that there is none: one
                # that came back after a power loss would be taken for a stranger's.
                sync_file(self._wal)
            leave_wal(connection)
        except apsw.Error as error:
            raise translate(error) from error
        finally:
            connection.close(_FORCE)
        try:
            with open_directory(self.path.parent) as directory:
                os.fsync(directory)
        except OSError as error:
            raise disk_error(error) from error

    def crash(self) -> None:
        """Close both connections as they are, because nobody knows what the last COMMIT left.

        The next `open` finds what the disk holds. Nothing is written.
        """
        self.reader.connection.close(_FORCE)
        self.writer.connection.close(_FORCE)

    def _log_frames(self) -> tuple[int, int]:
        """Return the frames of the log, and how many of them are in the database."""
        try:
            return self.writer.connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
        except apsw.Error as error:
            raise translate(error) from error

    def _wal_file_bytes(self) -> int:
        """Return the length of the log's file; 0 when there is none."""
        try:
            return self._wal.stat().st_size
        except FileNotFoundError:
            return 0
