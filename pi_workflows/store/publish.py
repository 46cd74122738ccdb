"""How a finished file gets its name: whole and on the disk, or not at all, and never over another.

Everything is relative to an open directory, so that a path that is swapped meanwhile leads nowhere
else.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_workflows.base.errors import PayloadInvalid, Unavailable

if TYPE_CHECKING:
    from collections.abc import Generator

_PRIVATE: Final = 0o600


def check_new(destination: Path) -> None:
    """Refuse the name of a file to be, before anything is written.

    Args:
        destination: Where it is to lie.

    Raises:
        PayloadInvalid: It is relative (`notAbsolute`), exists (`targetExists`), or lies in no
            existing directory (`directoryMissing`).
    """
    if not destination.is_absolute():
        raise refused(destination, "notAbsolute", "is not an absolute path")
    if not destination.parent.is_dir():
        raise refused(destination, "directoryMissing", "lies in no existing directory")
    if os.path.lexists(destination):
        raise refused(destination, "targetExists", "exists already")


def refused(destination: Path, code: str, what: str) -> PayloadInvalid:
    """Return the error of a destination that cannot be one."""
    return PayloadInvalid(
        f"The new file's path {what}: {destination}", code=code, field=str(destination)
    )


def path_of(directory: int, name: str, descriptor: int) -> Path:
    """Return where a file of an open directory is now, whatever was swapped meanwhile.

    Raises:
        OSError: It is not there.
    """
    path = Path(f"/proc/self/fd/{directory}").readlink() / name
    if not os.path.samestat(path.lstat(), os.fstat(descriptor)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path


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

    Args:
        directory: The open directory.
        prefix: How its name begins; the rest is random.

    Returns:
        Its name and a descriptor of it, open for reading and writing.

    Raises:
        OSError: It cannot be created.
    """
    name = f"{prefix}{secrets.token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, _PRIVATE, dir_fd=directory)
    try:
        # The mode asked for is what the umask leaves of it.
        os.fchmod(descriptor, _PRIVATE)
        yield name, descriptor
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def publish(directory: int, temporary: str, descriptor: int, name: str) -> None:
    """Give a finished file its name.

    Args:
        directory: The open directory.
        temporary: The file's name so far, which goes.
        descriptor: The file.
        name: The name to be.

    Raises:
        FileExistsError: Something has that name, be it a dangling link; it is left alone.
        OSError: The disk failed.
    """
    os.fsync(descriptor)
    # A link, because a rename would replace; the two names are one file for a moment.
    os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    os.unlink(temporary, dir_fd=directory)
    os.fsync(directory)


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
