"""The process lock: whoever holds it is the only server of a state directory.

Holding it proves that no other server lives, so its holder may take the next epoch at once and
remove a socket that an ended server left behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from pathlib import Path
from typing import Final, Self

from pi_workflows.base.errors import Refused, TransitionDenied

_MODE: Final = 0o600
_TRIES: Final = 3
_TRY_AGAIN_SECONDS: Final = 0.01


class ProcessLock:
    """An exclusive lock on `host/host.lock`, held until it is closed or the process ends.

    Args:
        descriptor: The open lock file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, file: Path) -> Self:
        """Take the lock without waiting.

        Args:
            file: The lock file; created with mode 0600 when it is missing, never removed.

        Returns:
            The lock; close it last of all.

        Raises:
            TransitionDenied: `serverRunning`: another process holds it.
            Refused: `lockInvalid`: the file is a link, or no regular file.
        """
        descriptor = _open(file, create=True)
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # `is_held` of another process holds it for a moment, which is no server.
                time.sleep(_TRY_AGAIN_SECONDS)
            else:
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
                return cls(descriptor)
        os.close(descriptor)
        raise TransitionDenied(
            "Another server is running for this state directory.",
            code="serverRunning",
            hint="See it with: pi-workflows server status",
        )

    def close(self) -> None:
        """Let the next server take the lock."""
        os.close(self._descriptor)


def is_held(file: Path) -> bool:
    """Say whether a server holds the lock now. The answer may be old when it arrives."""
    try:
        descriptor = _open(file, create=False)
    except (OSError, Refused):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(file: Path) -> int | None:
    """Return the process that holds the lock now, if one does and says so."""
    if not is_held(file):
        return None
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None


def remove_stale_socket(path: Path) -> None:
    """Remove the socket of a server that has ended. Only the holder of the lock may call this.

    Args:
        path: The socket's path.

    Raises:
        Refused: `socketPathTaken`: something else stands there, or something still listens. Nothing
            was removed.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Refused(f"{path} is not a socket; it was not removed.", code="socketPathTaken")
    with socket.socket(socket.AF_UNIX) as probe:
        # Only a refused connection proves that nobody listens.
        refused = probe.connect_ex(os.fspath(path)) == errno.ECONNREFUSED
    if not refused:
        raise Refused(f"Something listens on {path}; it was not removed.", code="socketPathTaken")
    path.unlink()


def _open(file: Path, *, create: bool) -> int:
    """Open the lock file itself, never what a link names."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(file, flags, _MODE)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        raise Refused(f"{file} is not a regular file.", code="lockInvalid") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(f"{file} is not a regular file.", code="lockInvalid")
    return descriptor
