"""When the hub tells, by a clock that the test moves: at once, and in rounds while it is loaded."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
import trio.testing

from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import (
    LOAD_WINDOW_MS,
    PUSH_REST_FACTOR,
    PUSH_REST_MS_MAX,
    PUSH_REST_MS_MIN,
    TOLD_AT_ONCE_MAX,
)
from pi_workflows.kernel.order import Answer
from pi_workflows.server.hub import Hub, Subscription
from tests.server.bench import run

_ROUNDS = 200
# More than the hub needs to tell.
_TURNS = 10
_CHANGE = Answer(Outcome.ACCEPTED, views={"run-1": 1})
# Of numbers in seconds that milliseconds are made of.
_SLIP_MS = 1e-6


def _work(seconds: float) -> None:
    """Let time go by in which the loop does nothing else."""
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, trio.testing.MockClock)
    clock.jump(seconds)


def _hub() -> Hub:
    """Return a hub of runs that reserve no session."""
    return Hub(lambda _run_id: None)


def _watch(hub: Hub, told: list[float], *, cost: float = 0.0, count: int = 1) -> None:
    """Let subscriptions of a run note when they are told, which costs each so many seconds."""

    def tell() -> None:
        _work(cost)
        told.append(trio.current_time())

    for number in range(count):
        hub.add(Subscription(f"s-{number}", "run-1", "connection", tell))


def test_changes_are_told_at_once() -> None:
    """A server that has time tells each change when it happens, whatever telling it costs."""

    async def body() -> None:
        hub = _hub()
        told: list[float] = []
        _watch(hub, told, cost=0.004)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hub.run)
            await trio.testing.wait_all_tasks_blocked()
            told.clear()
            changed: list[float] = []
            for _ in range(100):
                changed.append(trio.current_time())
                hub.process_changed("run-1")
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        assert told == pytest.approx([at + 0.004 for at in changed])

    run(body)


@pytest.mark.parametrize("cost_ms", [0, 1, 20, 60, 200])
def test_a_loaded_server_rests_between_rounds(cost_ms: int) -> None:
    """What happens in a rest, of thrice its round and of 30 to 250 ms, is told once and in the end.

    Meanwhile somebody works all the time and changes the run twice each millisecond.
    """
    rest_ms = min(max(PUSH_REST_MS_MIN, PUSH_REST_FACTOR * cost_ms), PUSH_REST_MS_MAX)

    async def body() -> None:
        hub = _hub()
        told: list[float] = []
        changed: list[float] = []
        _watch(hub, told, cost=cost_ms / 1_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hub.run)
            while trio.current_time() < 2 * LOAD_WINDOW_MS / 1_000 or len(told) < _ROUNDS:
                _work(0.001)
                changed.append(trio.current_time())
                hub.observe([_CHANGE, _CHANGE])
                await trio.lowlevel.checkpoint()
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        gaps_ms = [1_000 * (later - before) for before, later in pairwise(told[-_ROUNDS // 2 :])]
        # Whose turn it is at the end of a rest is drawn, so that some changes more are waited for.
        assert all(0 <= gap - cost_ms - rest_ms + _SLIP_MS <= 20 for gap in gaps_ms)
        assert told[-1] >= changed[-1]

    run(body)


def test_a_slow_machine_is_no_load() -> None:
    """Where no command has to wait for another one, each change is told, whatever time it takes."""

    async def body() -> None:
        hub = _hub()
        told: list[float] = []
        _watch(hub, told)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hub.run)
            await trio.testing.wait_all_tasks_blocked()
            told.clear()
            changed: list[float] = []
            for _ in range(_ROUNDS):
                _work(0.01)
                changed.append(trio.current_time())
                hub.observe([_CHANGE])
                for _ in range(_TURNS):
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert told == changed

    run(body)


def test_others_go_on_within_a_round() -> None:
    """However many are told of one change, everybody else gets a turn after every few of them."""

    async def body() -> None:
        hub = _hub()
        told: list[float] = []
        turns: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hub.run)
            _watch(hub, told, count=10 * TOLD_AT_ONCE_MAX)
            while len(told) < 10 * TOLD_AT_ONCE_MAX:
                turns.append(len(told))
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        steps = [later - before for before, later in pairwise([*turns, len(told)])]
        # Whose turn is first is drawn each time, so that two may come in a row.
        assert max(steps) <= 2 * TOLD_AT_ONCE_MAX

    run(body)
