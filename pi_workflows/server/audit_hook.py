"""Stops Python code of the server from opening or removing the live database behind SQLite's back.

Closing any descriptor of a database file drops every lock that the process holds on it, and another
process may then overwrite what was acknowledged. An audit hook sees what Python code opens;
SQLite's own calls pass it by. Hooks cannot be removed, so one is installed once and looks at the
files that are guarded now.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

_SIDECARS: Final = ("", "-wal", "-shm", "-journal")
# Where in an event's arguments a path stands, and the descriptor of the directory that it is
# relative to (the audit events table of the Python documentation).
_PATHS: Final[dict[str, tuple[tuple[int, int | None], ...]]] = {
    "open": ((0, None),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "shutil.copyfile": ((0, None), (1, None)),
    "shutil.move": ((0, None), (1, None)),
    "sqlite3.connect": ((0, None),),
}

_guarded: set[str] = set()
_identities: set[tuple[int, int]] = set()
_installed: list[bool] = []


class LiveFileTouchedError(AssertionError):
    """Code of the server reached for the live database without SQLite."""


def guard(database: Path) -> Callable[[], None]:
    """Guard a database and its sidecar files from now on.

    Args:
        database: The open main file, without symbolic links.

    Returns:
        A function that ends the guard; call it before the files may be touched again.
    """
    if not _installed:
        sys.addaudithook(_audit)
        _installed.append(True)
    names = {os.fspath(database) + sidecar for sidecar in _SIDECARS}
    found = database.stat()
    identity = (found.st_dev, found.st_ino)
    _guarded.update(names)
    _identities.add(identity)

    def release() -> None:
        _guarded.difference_update(names)
        _identities.discard(identity)

    return release


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse an event whose path is a guarded file, by name or by identity."""
    if not _guarded:
        return
    for place, directory in _PATHS.get(event, ()):
        path = arguments[place] if place < len(arguments) else None
        if not isinstance(path, str | bytes | os.PathLike):
            continue
        text = os.fsdecode(cast("str | bytes | os.PathLike[str]", path))
        anchor = arguments[directory] if directory is not None else None
        if isinstance(anchor, int) and anchor >= 0:
            text = f"/proc/self/fd/{anchor}/{text}"
        if _is_guarded(text):
            raise LiveFileTouchedError(f"{event} on the live database")


def _is_guarded(path: str) -> bool:
    """Whether a path names a guarded file, whatever way it takes there."""
    if os.path.abspath(path) in _guarded:  # noqa: PTH100 - runs for every open; pathlib would triple its cost
        return True
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return os.path.realpath(path) in _guarded
    return (found.st_dev, found.st_ino) in _identities
