"""Long commands: outside a transaction, beyond their client, and waited for at the end.

The client protocol, "Receipts and idempotency": one at a time for each client and key, so that a
second request waits and then adopts the receipt of the first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import trio

from pi_workflows.base.errors import Corrupt, Refused, Unavailable
from pi_workflows.protocol.reply import Reply
from pi_workflows.server.writer import stopping

Key: TypeAlias = tuple[str, str]


@dataclass(slots=True, eq=False)
class _Turn:
    """Whose turn it is under one key, and how many want one."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    users: int = 0


class LongWork:
    """The long commands that are under way."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._turns: dict[Key, _Turn] = {}
        self._active = 0
        self._is_closing = False
        self._idle = trio.Event()

    @property
    def active(self) -> int:
        """How many are under way."""
        return self._active

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry long commands until `close` was called and the last of them has ended."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await self._idle.wait()

    def close(self) -> None:
        """Take no more; `run` ends with the last one that is under way."""
        self._is_closing = True
        self._idle.set()

    async def perform(self, key: Key, action: Callable[[], Awaitable[Reply]]) -> Reply:
        """Do something once under a key, whether or not the caller stays.

        Args:
            key: Client ID and idempotency key.
            action: What to do; it begins with a look at the stored receipt.

        Returns:
            Its reply.

        Raises:
            Refused: As the action.
            Unavailable: As the action, or `stopping`.
            Corrupt: As the action.
            trio.Cancelled: The caller no longer waits; the action goes on.
        """
        if self._is_closing or self._nursery is None:
            raise stopping()
        outcome: list[Reply | Refused | Unavailable | Corrupt] = []
        done = trio.Event()
        self._active += 1
        self._nursery.start_soon(self._carry, key, action, outcome, done)
        await done.wait()
        result = outcome[0]
        if isinstance(result, Reply):
            return result
        raise result

    async def _carry(
        self,
        key: Key,
        action: Callable[[], Awaitable[Reply]],
        outcome: list[Reply | Refused | Unavailable | Corrupt],
        done: trio.Event,
    ) -> None:
        """Wait for the key, act, and leave the result to the caller."""
        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                outcome.append(await action())
        except (Refused, Unavailable, Corrupt) as error:
            outcome.append(error)
        finally:
            self._active -= 1
            turn.users -= 1
            if not turn.users:
                del self._turns[key]
        done.set()
