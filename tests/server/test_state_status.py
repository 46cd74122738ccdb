"""A look over the live state ends in time, and with whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import trio

from pi_workflows.server.operations.state import violations_now
from tests.server.bench import run, server
from tests.server.clocks import TrioClock


class LookedAt(TrioClock):
    """Time of which each look in another thread than the server's can be answered.

    Attributes:
        looks: How often it was looked at there.
        answer: Returns the reading of such a look, by the number of looks; None leaves it to trio.
    """

    answer: Callable[[int], int] | None = None
    looks = 0

    def monotonic_ns(self) -> int:
        """Return a monotonic reading."""
        if self.answer is None or trio.lowlevel.in_trio_run():
            return super().monotonic_ns()
        self.looks += 1
        return self.answer(self.looks)


def test_a_look_that_takes_too_long_is_partial(state_dir: Path) -> None:
    """What was found until the deadline is told, and that it is not all."""

    async def body() -> None:
        clock = LookedAt()
        async with server(state_dir, clock=clock) as bench:
            peer = await bench.connect()
            whole = (await peer.ask("state.status")).receipt
            clock.answer = lambda looks: 0 if looks < 5 else 2**62
            part = (await peer.ask("state.status")).receipt
            assert clock.looks == 5
            assert isinstance(whole, dict)
            assert isinstance(part, dict)
            assert "violationsPartial" not in whole
            assert (part["violationsPartial"], part["violations"]) == (True, [])

    run(body, mock=False)


def test_a_look_ends_with_who_asked(state_dir: Path) -> None:
    """A caller that is cancelled while the state is looked over ends at once."""

    async def body() -> None:
        clock = LookedAt()
        async with server(state_dir, clock=clock) as bench:
            scope = trio.CancelScope()

            def cancel(looks: int) -> int:
                if looks == 5:
                    trio.from_thread.run_sync(scope.cancel)
                return 0

            clock.answer = cancel
            with scope:
                await violations_now(bench.parts.services)
            assert scope.cancelled_caught
            assert clock.looks == 5

    run(body, mock=False)
