"""Idleness is counted from the last thing that happened, and never polled."""

from __future__ import annotations

import trio
import trio.testing

from pi_workflows.base.limits import IDLE_EXIT_MS
from pi_workflows.server.idle import Idle

_IDLE_SECONDS = IDLE_EXIT_MS / 1_000


def test_it_returns_ten_minutes_after_the_last_touch() -> None:
    """Every touch begins the ten minutes anew."""

    async def body() -> None:
        idle = Idle(lambda: False)

        async def touch() -> None:
            for _ in range(5):
                await trio.sleep(_IDLE_SECONDS / 2)
                idle.touch()

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(touch)
            await idle.run()
        assert trio.current_time() - began == 5 * _IDLE_SECONDS / 2 + _IDLE_SECONDS

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


def test_what_is_busy_is_waited_for_without_looking() -> None:
    """While somebody needs the server it is asked once, and then only after the next touch."""

    async def body() -> None:
        is_busy = True
        asked = 0

        def busy() -> bool:
            nonlocal asked
            asked += 1
            return is_busy

        idle = Idle(busy)
        async with trio.open_nursery() as nursery:

            async def leave() -> None:
                nonlocal is_busy
                await trio.sleep(100 * _IDLE_SECONDS)
                is_busy = False
                idle.touch()

            nursery.start_soon(leave)
            began = trio.current_time()
            await idle.run()
        assert trio.current_time() - began == 101 * _IDLE_SECONDS
        assert asked == 2

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))
