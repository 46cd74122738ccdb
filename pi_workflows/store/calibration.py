"""What the disk does without us: how long a bare commit takes in a scratch file."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.base import ids
from pi_workflows.store.driver import connect
from pi_workflows.store.errors import translate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_workflows.store.driver import Connection

_LIVE_VFS: Final = "unix-excl"
_SIDECARS: Final = ("", "-wal", "-shm", "-journal")
_FORCE = True


def measure_commits(
    directory: Path, *, commit_count: int, monotonic_ns: Callable[[], int]
) -> list[int]:
    """Commit one page after another with the live file's durability, and time each commit.

    Args:
        directory: Where the scratch file lies, on the disk in question. It is gone afterwards.
        commit_count: How many commits.
        monotonic_ns: The clock.

    Returns:
        Nanoseconds of each, from BEGIN until COMMIT returned, in order.

    Raises:
        Unavailable: The disk is full or failed.
    """
    path = directory / f".{ids.random_id('calibration')}.sqlite"
    try:
        connection = connect(str(path), vfs=_LIVE_VFS)
        try:
            return _measured(connection, commit_count, monotonic_ns)
        finally:
            connection.close(_FORCE)
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        for sidecar in _SIDECARS:
            with suppress(OSError):
                path.with_name(path.name + sidecar).unlink(missing_ok=True)


def _measured(
    connection: Connection, commit_count: int, monotonic_ns: Callable[[], int]
) -> list[int]:
    """Return the time of each commit."""
    connection.pragma("locking_mode", "EXCLUSIVE")
    connection.pragma("journal_mode", "WAL")
    connection.wal_autocheckpoint(0)
    connection.pragma("synchronous", "FULL")
    durations: list[int] = []
    for number in range(1, commit_count + 1):
        began_ns = monotonic_ns()
        connection.execute("BEGIN IMMEDIATE")
        # One page changes, as a row of one page would change it.
        connection.pragma("user_version", number)
        connection.execute("COMMIT")
        durations.append(monotonic_ns() - began_ns)
    return durations
