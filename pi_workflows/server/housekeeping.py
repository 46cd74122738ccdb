"""What has to be looked at while nothing happens: whether file and socket keep their names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from pi_workflows.base.errors import Corrupt
from pi_workflows.store.database import Store

_LOOK_SECONDS: Final = 1.0


async def watch_file(store: Store) -> None:
    """Look each second whether the database was moved or replaced, until cancelled.

    Args:
        store: The open database.

    Raises:
        Corrupt: `stateMoved`: what is written now would be lost. The server must end.
    """
    while True:
        await trio.sleep(_LOOK_SECONDS)
        require_in_place(store)


async def watch_socket(path: Path) -> None:
    """Look each second whether the socket still has its name; return when it has not.

    Nobody can connect then. A server that ends lets the next command start one that is reachable.

    Args:
        path: The bound socket.
    """
    bound = _identity(path)
    while True:
        await trio.sleep(_LOOK_SECONDS)
        if bound is None or _identity(path) != bound:
            return


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file a path names, without following or opening it."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def require_in_place(store: Store) -> None:
    """Refuse to go on with a file that was moved or replaced. Raises Corrupt `stateMoved`."""
    if store.moved():
        raise Corrupt(
            "The database file was moved or replaced while it was open.",
            code="stateMoved",
            hint="Put it back, then start the server again.",
        )
