"""What has to be looked at while nothing happens: whether the open file still has its name."""

from __future__ import annotations

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


def require_in_place(store: Store) -> None:
    """Refuse to go on with a file that was moved or replaced. Raises Corrupt `stateMoved`."""
    if store.moved():
        raise Corrupt(
            "The database file was moved or replaced while it was open.",
            code="stateMoved",
            hint="Put it back, then start the server again.",
        )
