"""Clients that command, each its own run: pause it, let it go on, and again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

import trio

from benchmarks.service import Service
from pi_workflows.client.trio_client import TrioClient, open_client
from pi_workflows.protocol.operations import Operation

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000


@dataclass(slots=True)
class Commander:
    """One client.

    Attributes:
        run_id: Its run.
        first_revision: The presentation revision of the run before the first command.
        asked_ns: When each command was asked for.
        replied_ns: When its reply, which is durable, was there.
    """

    run_id: str
    first_revision: int = 0
    asked_ns: list[int] = field(default_factory=list[int])
    replied_ns: list[int] = field(default_factory=list[int])

    @property
    def last_revision(self) -> int:
        """The presentation revision after the last command: each makes one."""
        return self.first_revision + len(self.replied_ns)

    def latencies_ms(self) -> list[float]:
        """Return how long each command took."""
        return [
            (replied - asked) / _NS_PER_MS
            for asked, replied in zip(self.asked_ns, self.replied_ns, strict=True)
        ]


async def _command(client: TrioClient, commander: Commander, count: int, rate: float) -> None:
    """Send commands one after the other, at a rate or as fast as they are answered."""
    began = trio.current_time()
    operations = cycle((Operation.RUN_PAUSE, Operation.RUN_RESUME))
    for number, operation in zip(range(count), operations, strict=False):
        if rate:
            await trio.sleep_until(began + number / rate)
        commander.asked_ns.append(time.monotonic_ns())
        reply = await client.request(operation, {}, run_id=commander.run_id)
        commander.replied_ns.append(time.monotonic_ns())
        reply.done()


def commanded(
    service: Service, run_ids: Sequence[str], count: int, *, rate: float = 0
) -> list[Commander]:
    """Let clients command side by side.

    Args:
        service: The server.
        run_ids: A run for each client.
        count: Commands of each; an even number leaves the runs as they were.
        rate: Commands a second of each; 0 is as fast as they are answered.

    Returns:
        What each client saw.
    """
    commanders = [Commander(run_id) for run_id in run_ids]

    async def command(client: TrioClient, commander: Commander) -> None:
        await _command(client, commander, count, rate)

    trio.run(_all, service, commanders, command)
    return commanders


async def _all(
    service: Service,
    commanders: Sequence[Commander],
    command: Callable[[TrioClient, Commander], Awaitable[None]],
) -> None:
    """Connect every client, and begin when all are there."""
    async with trio.open_nursery() as connections:
        clients: list[TrioClient] = []
        for commander in commanders:
            client = await open_client(connections, service.endpoint())
            view = await client.request(Operation.VIEW_RUN_GET, {}, run_id=commander.run_id)
            commander.first_revision = view.done().revision or 0
            clients.append(client)
        async with trio.open_nursery() as commands:
            for client, commander in zip(clients, commanders, strict=True):
                commands.start_soon(command, client, commander)
        connections.cancel_scope.cancel()


def rate_of(commanders: Sequence[Commander]) -> float:
    """Return how many commands a second were answered, from the first question on."""
    began = min(each.asked_ns[0] for each in commanders)
    ended = max(each.replied_ns[-1] for each in commanders)
    return sum(len(each.replied_ns) for each in commanders) * _NS_PER_S / (ended - began)
