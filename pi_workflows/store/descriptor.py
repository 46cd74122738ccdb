"""A database in a file that is open already: SQLite reads and writes it through that descriptor.

A path can be renamed, linked or mounted over between two looks at it. Through its descriptor the
file that was judged is the one that is read, and the file that was made the one that is filled.
Nothing lies beside it: no journal, no log, no lock.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final, cast

import apsw

from pi_workflows.store.driver import connect

if TYPE_CHECKING:
    from pi_workflows.store.driver import Connection

# The file layer's name, which an ATTACH names too.
DESCRIPTORS: Final = "pi-workflows-descriptor"
_PLACE: Final = "/proc/self/fd/"
_SECTOR_BYTES: Final = 4_096
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class _File:
    """SQLite's view of an open descriptor, which stays open when SQLite closes it.

    The methods are those of `apsw.VFSFile`; nobody else uses the file, so locks are free.
    """

    def __init__(self, descriptor: int, *, is_read_only: bool) -> None:
        self._descriptor = descriptor
        # Nothing can change it: SQLite looks for no journal and takes no lock.
        self._characteristics = apsw.SQLITE_IOCAP_IMMUTABLE if is_read_only else 0

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - apsw's name
        """Read; fewer bytes than asked for at the end of the file."""
        try:
            return os.pread(self._descriptor, amount, offset)
        except OSError as error:
            raise _fault(error) from error

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - apsw's name
        """Write every byte."""
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._descriptor, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise _fault(error) from error

    def xTruncate(self, size: int) -> None:  # noqa: N802 - apsw's name
        """Cut the file."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise _fault(error) from error

    def xSync(self, _flags: int) -> None:  # noqa: N802 - apsw's name
        """Put the file on the disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _fault(error) from error

    def xFileSize(self) -> int:  # noqa: N802 - apsw's name
        """Return the file's length."""
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _fault(error) from error

    def xLock(self, _level: int) -> None:  # noqa: N802 - apsw's name
        """Take a lock."""

    def xUnlock(self, _level: int) -> None:  # noqa: N802 - apsw's name
        """Let a lock go."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802 - apsw's name
        """Return whether somebody is about to write."""
        return False

    def xFileControl(self, _operation: int, _pointer: int) -> bool:  # noqa: N802 - apsw's name
        """Know no further question."""
        return False

    def xSectorSize(self) -> int:  # noqa: N802 - apsw's name
        """Return how many bytes a crash may spoil beside those written."""
        return _SECTOR_BYTES

    def xDeviceCharacteristics(self) -> int:  # noqa: N802 - apsw's name
        """Return what SQLite may rely on."""
        return self._characteristics

    def xClose(self) -> None:  # noqa: N802 - apsw's name
        """Leave the descriptor to its owner."""


class _Descriptors(apsw.VFS):
    """The file layer whose files are open descriptors; `/proc/self/fd/N` is the name of one."""

    def __init__(self) -> None:
        super().__init__(DESCRIPTORS, "unix")

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - apsw's name
        """Keep the name: it is resolved nowhere."""
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: ARG002, N802 - apsw's names
        """Say that nothing lies beside the file."""
        return False

    def xOpen(  # noqa: N802 - apsw's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Hand out the descriptor that the name names."""
        if name is None:
            # What a statement sorts and memory does not hold: a file that has no name.
            return apsw.VFSFile("unix", None, flags)
        text = name if isinstance(name, str) else name.filename()
        file = _File(
            int(text.removeprefix(_PLACE)),
            is_read_only=bool(flags[0] & apsw.SQLITE_OPEN_READONLY),
        )
        # apsw takes whatever has these methods.
        return cast("apsw.VFSFile", file)


# SQLite knows the layer for as long as this lives.
_LAYER: Final = _Descriptors()


def connect_descriptor(descriptor: int, *, is_read_only: bool) -> Connection:
    """Open the database in an open file.

    Args:
        descriptor: The file; it outlives the connection and stays open.
        is_read_only: Nobody changes the file meanwhile, and neither does this connection.

    Returns:
        The connection; whoever opens it closes it.

    Raises:
        apsw.Error: SQLite could not read it.
    """
    flags = apsw.SQLITE_OPEN_READONLY if is_read_only else apsw.SQLITE_OPEN_READWRITE
    # The connection itself is opened by a path; the flag lets it ATTACH by a URI.
    flags |= apsw.SQLITE_OPEN_URI
    return connect(f"{_PLACE}{descriptor}", flags=flags, vfs=DESCRIPTORS)


def _fault(error: OSError) -> apsw.Error:
    """Return what the system refused as SQLite says it."""
    kind = apsw.FullError if error.errno in _FULL else apsw.IOError
    return kind(error.strerror)
