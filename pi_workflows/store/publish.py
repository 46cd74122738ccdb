"""How a finished file gets its name: whole and on the disk, or not at all, and never over another.

Everything is relative to an open directory, so that a path that is swapped meanwhile leads nowhere
else.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_workflows.base.errors import PayloadInvalid, Unavailable

if TYPE_CHECKING:
    from collections.abc import Generator

_PRIVATE: Final = 0o600
_RANDOM_BYTES: Final = 8
# What SQLite keeps beside a database, and reads as a part of it.
_SIDECARS: Final = ("-wal", "-journal", "-shm")
# What no waiting and no room on the disk will change.
_UNUSABLE: Final = frozenset(
    {
        errno.EACCES,
        errno.EINVAL,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        # A directory takes no file at all, as those in /proc.
        errno.ENOENT,
        errno.ENOSYS,
        errno.ENOTDIR,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.EROFS,
    }
)


def check_new(destination: Path) -> None:
    """Refuse the name of a file to be, before anything is written.

    Args:
        destination: Where it is to lie.

    Raises:
        PayloadInvalid: It is relative (`notAbsolute`), exists (`targetExists`), lies in no existing
            directory (`directoryMissing`), would be taken for a part of another file, or the system
            takes no such path (`targetUnusable`).
    """
    if not destination.is_absolute():
        raise refused(destination, "notAbsolute", "is not an absolute path")
    for suffix in _SIDECARS:
        owner = destination.name.removesuffix(suffix)
        if owner not in ("", destination.name) and os.path.lexists(destination.with_name(owner)):
            raise refused(destination, "targetUnusable", f"would be taken for a part of {owner}")
    try:
        if not destination.parent.is_dir():
            raise refused(destination, "directoryMissing", "lies in no existing directory")
        # A link that leads nowhere is there too.
        destination.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise target_error(destination, error) from error
    except ValueError as error:
        raise refused(destination, "targetUnusable", "is none that a file can have") from error
    raise refused(destination, "targetExists", "exists already")


def refused(destination: Path, code: str, what: str) -> PayloadInvalid:
    """Return the error of a destination that cannot be one."""
    return PayloadInvalid(
        f"The new file's path {what}: {destination}", code=code, field=str(destination)
    )


def target_error(destination: Path, error: OSError) -> Exception:
    """Return what it means that a new file could not be made or named.

    Args:
        destination: Where it was to lie.
        error: What the system said.

    Returns:
        PayloadInvalid when there can be no such file (`targetExists`, `targetUnusable`), else as
        `disk_error`.
    """
    if error.errno == errno.EEXIST:
        return refused(destination, "targetExists", "exists already")
    if error.errno in _UNUSABLE:
        return refused(destination, "targetUnusable", f"cannot be used ({error.strerror})")
    return disk_error(error)


@contextmanager
def open_directory(path: Path) -> Generator[int]:
    """Open a directory for as long as the body runs; give its descriptor.

    Raises:
        OSError: It is no directory, or cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def temporary_file(directory: int, prefix: str) -> Generator[tuple[str, int]]:
    """Create an empty file, mode 0600, that is gone when the body ends.

    A process that is killed leaves it; whoever next makes one with this prefix there removes it.

    Args:
        directory: The open directory.
        prefix: How its name begins; the rest is random.

    Returns:
        Its name and a descriptor of it, open for reading and writing.

    Raises:
        OSError: It cannot be created.
    """
    _remove_leftovers(directory, prefix)
    while True:
        name = f"{prefix}{secrets.token_hex(_RANDOM_BYTES)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, _PRIVATE, dir_fd=directory)
        try:
            # The mode asked for is what the umask leaves of it.
            os.fchmod(descriptor, _PRIVATE)
            if _is_claimed(descriptor):
                yield name, descriptor
                return
        finally:
            os.close(descriptor)
            # It is gone when it was published; what cannot be removed now the next one removes.
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)


def _is_claimed(descriptor: int) -> bool:
    """Lock a new file for as long as it is open: it is in use, and no leftover.

    Returns:
        Whether nobody took it for one and removed it before.
    """
    # Where there are no locks, nobody can tell a leftover and nobody removes one.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def _remove_leftovers(directory: int, prefix: str) -> None:
    """Remove temporary files of ours whose process has ended: nobody has them locked."""
    pattern = re.compile(f"{re.escape(prefix)}[0-9a-f]{{{2 * _RANDOM_BYTES}}}")
    with os.scandir(directory) as found:
        names = [each.name for each in found]
    for name in names:
        if pattern.fullmatch(name):
            # Whatever the system refuses stays where it is, as the file of another user does.
            with suppress(OSError):
                _remove_leftover(directory, name)


def _remove_leftover(directory: int, name: str) -> None:
    """Remove a file unless it is in use or not ours.

    Raises:
        OSError: It is in use, or the system refused.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(name, dir_fd=directory)
    finally:
        os.close(descriptor)


def publish(directory: int, temporary: str, descriptor: int, name: str) -> None:
    """Give a finished file its name.

    Args:
        directory: The open directory.
        temporary: The file's name so far, which goes.
        descriptor: The file.
        name: The name to be.

    Raises:
        FileExistsError: Something has that name, be it a dangling link; it is left alone.
        OSError: The disk failed; nothing has the name.
    """
    os.fsync(descriptor)
    # A link, because a rename would replace; of what is open, whatever has its name by now.
    os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=directory, follow_symlinks=True)
    try:
        os.unlink(temporary, dir_fd=directory)
        os.fsync(directory)
    except BaseException:
        # Nobody was told of it, and whether the name survives a power loss is unknown.
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte.

    Raises:
        OSError: The disk is full or failed.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def disk_error(error: OSError) -> Exception:
    """Return what a failure to write a file means, as `errors.translate` does for SQLite's."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Unavailable(
            "The disk is full; nothing was changed.", code="diskFull", hint="Free some space."
        )
    return Unavailable(
        f"A file could not be written: {error.strerror}.",
        code="storageFault",
        field=None if error.filename is None else str(error.filename),
    )
