"""The load of a loop: what its tasks take of the time, and nothing of what they wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from pi_workflows.base.limits import LOAD_WINDOW_MS
from pi_workflows.server.loop_load import LoopLoad

_WINDOW = LOAD_WINDOW_MS / 1_000


def _measured(body: Callable[[LoopLoad, trio.testing.MockClock], Awaitable[None]]) -> None:
    """Measure the loop that a body runs in."""
    clock = trio.testing.MockClock(autojump_threshold=0)

    async def measure() -> None:
        load = LoopLoad()
        trio.lowlevel.add_instrument(load)
        # What begins before it looks is not seen.
        await trio.lowlevel.checkpoint()
        await body(load, clock)

    trio.run(measure, clock=clock)


@pytest.mark.parametrize(("work", "wait"), [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)])
def test_it_is_the_part_that_is_worked(work: int, wait: int) -> None:
    """Of four milliseconds so many are work: that is the share, over a window."""

    async def body(load: LoopLoad, clock: trio.testing.MockClock) -> None:
        for _ in range(2 * LOAD_WINDOW_MS // (work + wait)):
            clock.jump(work / 1_000)
            await trio.sleep(wait / 1_000)
        assert load.share() == pytest.approx(work / 4, abs=0.05)

    _measured(body)


def test_it_forgets() -> None:
    """A burst that is shorter than a window does not count yet, and one that is past no more."""

    async def body(load: LoopLoad, clock: trio.testing.MockClock) -> None:
        clock.jump(0.9 * _WINDOW)
        await trio.lowlevel.checkpoint()
        assert load.share() == 0
        clock.jump(0.2 * _WINDOW)
        await trio.lowlevel.checkpoint()
        assert load.share() == pytest.approx(1)
        await trio.sleep(_WINDOW)
        assert load.share() == pytest.approx(0)

    _measured(body)
