"""Claims that hold are kept, claims that ran out never are, and active time survives a crash."""

from __future__ import annotations

from pathlib import Path

import trio

from pi_workflows.base import ids
from pi_workflows.domain.run.control import PauseRun
from pi_workflows.protocol import runner
from tests.server.clocks import START_MS, TrioClock
from tests.server.scripts import applying, settle_of
from tests.server.stage import Stage, end_of, play, staged, start_of


class SleepyClock(TrioClock):
    """Trio's time, beside a wall clock that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self.slept_ms = 0

    def now_ms(self) -> int:
        """Return the wall time."""
        return super().now_ms() + self.slept_ms


def expiry(stage: Stage, resource_id: str) -> int:
    """Return when a claim ends, in milliseconds after the test's start."""
    (found,) = [row for row in stage.rows("leases") if row["resource_id"] == resource_id]
    assert isinstance(found["expires_at"], int)
    return found["expires_at"] - START_MS


def test_claims_of_a_silent_runner_are_renewed(tmp_path: Path) -> None:
    """A node that says nothing for ten minutes keeps its run, and its effect too."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage)
            (permit,) = stage.supervisor.runs["run-1"].effects.values()
            await trio.sleep(600)
            assert stage.scheduler.live_runs() == {"run-1"}
            assert expiry(stage, ids.resource_id("run", "run-1")) > 600_000
            assert expiry(stage, permit.resource_id) > 600_000
            assert expiry(stage, permit.resource_id) <= 660_000
            await peer.accepted(settle_of(effect_id))

    play(script)


def test_boundary_renews_the_claim(tmp_path: Path) -> None:
    """A runner that proposes keeps its claim without any timer."""

    async def script() -> None:
        async with staged(tmp_path / "state", is_timed=False) as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await trio.sleep(50)
            await peer.accepted(end_of("one"), start_of("two"))
            assert expiry(stage, ids.resource_id("run", "run-1")) == 110_000
            await trio.sleep(50)
            assert stage.scheduler.live_runs() == {"run-1"}

    play(script)


def test_active_time_is_sampled_every_five_seconds(tmp_path: Path) -> None:
    """A crash costs at most five seconds of what a node had used of its budget."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await trio.sleep(2)
            await peer.accepted(start_of("one"))
            await trio.sleep(22)
            interval = stage.row("attempt_active_intervals")
            assert interval["elapsed_ms"] == 18_000
            assert interval["observed_at"] == START_MS + 20_000
            peer.leave(137)
            await stage.begun()
            closed = stage.row("attempt_active_intervals")
            assert closed["elapsed_ms"] == 18_000
            assert closed["ended_at"] == START_MS + 20_000

    play(script)


def test_active_time_stops_at_a_pause_that_waits_for_an_effect(tmp_path: Path) -> None:
    """What a manual effect takes after the pause is not counted."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage, "manual")
            await trio.sleep(7)
            await stage.do(PauseRun("run-1"))
            await peer.expect(runner.Stop)
            await trio.sleep(30)
            assert stage.row("attempt_active_intervals")["elapsed_ms"] == 7_000
            await peer.accepted(settle_of(effect_id))
            peer.leave()
            await stage.ended()
            assert stage.row("attempt_active_intervals")["elapsed_ms"] == 7_000

    play(script)


def test_wall_clock_that_steps_back_takes_no_active_time(tmp_path: Path) -> None:
    """Samples are monotonic whatever the wall clock does."""
    clock = SleepyClock()

    async def script() -> None:
        async with staged(tmp_path / "state", clock=clock) as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await trio.sleep(7)
            clock.slept_ms = -3_600_000
            await trio.sleep(9)
            interval = stage.row("attempt_active_intervals")
            assert interval["elapsed_ms"] == 15_000
            assert interval["observed_at"] == START_MS + 5_000
            await peer.accepted(end_of("one"), start_of("two"))

    play(script)


def test_heartbeat_keeps_the_servers_claim(tmp_path: Path) -> None:
    """Minutes later the server still holds its epoch, up to thirty seconds ahead."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await trio.sleep(295)
            state = stage.row("workflow_host_state")
            assert isinstance(state["expires_at"], int)
            assert 295_000 < state["expires_at"] - START_MS <= 320_000

    play(script)


def test_server_that_slept_renews_nothing(tmp_path: Path) -> None:
    """After a sleep longer than its claim the clockwork ends, and no claim was moved."""
    clock = SleepyClock()

    async def script() -> None:
        async with staged(tmp_path / "state", clock=clock, is_timed=False) as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            run = ids.resource_id("run", "run-1")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.timers.run)
                await trio.sleep(12)
                beat = stage.row("workflow_host_state")
                clock.slept_ms = 120_000
            assert trio.current_time() <= 20
            assert stage.row("workflow_host_state") == beat
            assert expiry(stage, run) == 60_000
            assert stage.scheduler.live_runs() == frozenset()
            late = await peer.ask(end_of("one"), start_of("two"))
            assert late.outcome == "claimLost"

    play(script)
