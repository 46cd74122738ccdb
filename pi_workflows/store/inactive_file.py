"""Which file a path leads to, judged once and opened as judged: by its descriptor, by no path.

Two looks at a path may find two files. So the file is held first, without being opened: such a
handle reads nothing, waits for nobody at a pipe, and drops no lock when it is closed. What it holds
is compared with the live file, and then that very file is opened for reading.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_workflows.base.errors import AuthorityDenied, NotFound, Unavailable
from pi_workflows.store.opening import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Generator

_SIDECARS: Final = ("-wal", "-journal", "-shm")
_BACK_UP: Final = "Take a backup and look into that: pi-workflows state backup FILE"
_NOWHERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
# `struct flock` of 64-bit Linux: type, whence, start, length, process.
_LOCK: Final = struct.Struct("hhqqi4x")
# The bytes that SQLite locks (its file format, section 1.3.1 "The Lock-Byte Page").
_LOCKS_OFFSET: Final = 0x4000_0000
_LOCKS_BYTES: Final = 512


@contextmanager
def open_file(file: Path, *, live_directory: Path | None) -> Generator[int]:
    """Open a file that may be a database which no server has open.

    Args:
        file: By any path.
        live_directory: The state directory, whose `state.sqlite` is refused whatever leads to it.

    Returns:
        A descriptor that only reads, for as long as the body runs.

    Raises:
        NotFound: There is no such file (`fileMissing`).
        AuthorityDenied: It is the live database (`liveFile`) or another one that a process writes
            (`fileInUse`), is no regular file (`notRegularFile`), may not be read
            (`fileUnreadable`), or files lie beside it that belong to it (`notSelfContained`).
        Unavailable: The disk failed.
    """
    handle = _hold(file)
    try:
        _check(file, handle, live_directory)
        # Regular files never wait; what only looks like one, as some in /proc, does not either.
        flags = os.O_RDONLY | os.O_NONBLOCK
        descriptor = _opened(file, f"/proc/self/fd/{handle}", flags)
    finally:
        os.close(handle)
    try:
        if _is_written(descriptor):
            raise _refused(file, "fileInUse", "A server has this database open", _BACK_UP)
        yield descriptor
    finally:
        os.close(descriptor)


def _hold(file: Path) -> int:
    """Return a handle of what a path leads to, which is not opened by that.

    Raises:
        NotFound: It leads nowhere.
        AuthorityDenied: A directory on the way may not be entered.
    """
    try:
        return _opened(file, file, os.O_PATH)
    except ValueError as error:
        # A path with a NUL, or with characters that no path has.
        raise _missing(file) from error


def _opened(file: Path, path: str | Path, flags: int) -> int:
    """Open a path; say what the system refused about the file that was named."""
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NOWHERE:
            raise _missing(file) from error
        if isinstance(error, PermissionError):
            raise _refused(file, "fileUnreadable", "This file may not be read") from error
        raise Unavailable(
            f"The file could not be opened: {error.strerror}.",
            code="storageFault",
            field=str(file),
        ) from error


def _check(file: Path, handle: int, live_directory: Path | None) -> None:
    """Refuse a file by what it is and by what lies beside it."""
    found = os.fstat(handle)
    if live_directory is not None and _is_live(found, live_directory / FILE_NAME):
        raise _refused(file, "liveFile", "This is the live database", _BACK_UP)
    if not stat.S_ISREG(found.st_mode):
        raise _refused(file, "notRegularFile", "This is no regular file")
    path = Path(f"/proc/self/fd/{handle}").readlink()
    for suffix in _SIDECARS:
        if os.path.lexists(f"{path}{suffix}"):
            raise AuthorityDenied(
                f"{path.name}{suffix} lies beside the database, which is not complete without it.",
                code="notSelfContained",
                field=str(file),
                hint="Make a backup with `state backup`, or stop the server in order.",
            )


def _is_live(found: os.stat_result, live: Path) -> bool:
    """Return whether a file is the live one, which is looked at and not opened."""
    try:
        return os.path.samestat(found, live.stat())
    except OSError:
        return False


def _is_written(descriptor: int) -> bool:
    """Return whether a process has the file locked for writing, as a server has all the time.

    The question takes no lock. It finds a live database whose directory nobody named.
    """
    question = _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, _LOCKS_OFFSET, _LOCKS_BYTES, 0)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, question)
    except OSError:
        # A file system without locks has no server's database.
        return False
    kind: int = _LOCK.unpack(answer)[0]
    return kind != fcntl.F_UNLCK


def _missing(file: Path) -> NotFound:
    return NotFound(f"There is no such file: {file}", code="fileMissing", field=str(file))


def _refused(file: Path, code: str, what: str, hint: str | None = None) -> AuthorityDenied:
    return AuthorityDenied(f"{what}: {file}", code=code, field=str(file), hint=hint)
