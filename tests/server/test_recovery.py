"""Whoever takes over ends what was left, and every run goes on as it must, exactly once."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.run.ending import FinishRun
from pi_workflows.kernel import dispatch
from pi_workflows.kernel.order import Order
from pi_workflows.server.recovery import Recovered, Recovery
from pi_workflows.server.registry import Registry
from pi_workflows.store.records import Permit
from projections import route
from tests.server.processes import PATIENCE_SECONDS, Nest, cookied, nest
from tests.server.scripts import applying
from tests.server.stage import Stage, doomed, end_of, play, staged, start_of

SLEEPER = "import time; print('here', flush=True); time.sleep(1000)"


@pytest.fixture
def children(tmp_path: Path) -> Path:
    """The registry's directory, empty."""
    made = tmp_path / "children"
    made.mkdir()
    return made


async def recover(stage: Stage, children: Path) -> Recovered:
    """Take over, as a starting server does."""
    recovery = Recovery(
        store=stage.store,
        writer=stage.writer,
        registry=Registry(children),
        clock=stage.clock,
        log=stage.log,
        host_id=stage.host.host_id,
    )
    return await recovery.run()


def really(script: Callable[[], Awaitable[None]]) -> None:
    """Run a test with processes, whose time is not trio's to make."""

    async def run() -> None:
        with trio.fail_after(PATIENCE_SECONDS):
            await script()

    trio.run(run)


async def here(output: int) -> None:
    """Wait until a child says that it is there."""
    async with trio.lowlevel.FdStream(output) as stream:
        assert await stream.receive_some(4) == b"here"


def test_run_of_a_lost_server_goes_on_without_a_mark_against_it(
    tmp_path: Path, children: Path
) -> None:
    """Its claim is released by the system, its attempt interrupted, its worker row orphaned."""

    async def script() -> None:
        async with doomed(tmp_path / "state") as lost:
            await lost.start()
            peer = await lost.begun()
            await peer.accepted(start_of("one"))
            await peer.accepted(end_of("one"), start_of("two"))
        async with staged(tmp_path / "state", runners_max=0) as stage:
            found = await recover(stage, children)
            assert (found.claims, found.runs) == (1, ("run-1",))
            assert stage.events()[-2:] == ["lease.released", "run.requeued"]
            released = stage.rows("events")[-2]
            assert released["actor_type"] == "system"
            assert stage.row("run_workers")["status"] == "orphaned"
            assert stage.rows("node_attempts")[1]["status"] == "interrupted"
            queue = stage.row("run_queue")
            assert (queue["status"], queue["consecutive_errors"]) == ("queued", 0)
            stage.scheduler.runners_max = 1
            await stage.start("run-2")
            again = await stage.begun()
            assert set(stage.supervisor.runs) == {"run-1"}
            await again.accepted(start_of("two", number=2))

    play(script)


def test_run_that_was_claimed_and_not_launched_is_queued_again(
    tmp_path: Path, children: Path
) -> None:
    """A server that died between claim and launch left nothing but the claim."""

    async def script() -> None:
        async with doomed(tmp_path / "state") as lost:
            await lost.start()
            while not lost.supervisor.runs:
                await trio.lowlevel.checkpoint()
        async with staged(tmp_path / "state", runners_max=0) as stage:
            assert stage.row("run_queue")["status"] == "starting"
            found = await recover(stage, children)
            assert (found.claims, found.runs) == (1, ("run-1",))
            queue = stage.row("run_queue")
            assert (queue["status"], queue["consecutive_errors"]) == ("queued", 0)

    play(script)


@pytest.mark.parametrize(
    ("recovery", "effect", "queue"),
    [("idempotent", "pending", "queued"), ("manual", "ambiguous", "parked")],
)
def test_effect_that_was_under_way_is_resolved(
    tmp_path: Path, children: Path, recovery: str, effect: str, queue: str
) -> None:
    """An idempotent effect may be tried again; a manual one parks its run for a person."""

    async def script() -> None:
        async with doomed(tmp_path / "state") as lost:
            await applying(lost, recovery)
        async with staged(tmp_path / "state", runners_max=0) as stage:
            found = await recover(stage, children)
            assert found.claims == 2
            assert stage.row("effects")["status"] == effect
            assert stage.row("run_queue")["status"] == queue
            assert {row["owner_id"] for row in stage.rows("leases")} == {None}

    play(script)


def test_ended_run_whose_queue_does_not_know_it_is_settled(tmp_path: Path, children: Path) -> None:
    """A crash between a run's end and its settlement leaves the effect, which is applied."""

    async def script() -> None:
        async with doomed(tmp_path / "state") as lost:
            await lost.start()
            peer = await lost.begun()
            await peer.accepted(start_of("one"))
            await peer.accepted(end_of("one", 1), start_of("two"))
            await peer.accepted(end_of("two", 2))
            permit = lost.supervisor.runs["run-1"].permit
            _finish_without_settling(lost, permit)
        async with staged(tmp_path / "state", runners_max=0) as stage:
            assert stage.events()[-1] == "run.completed"
            found = await recover(stage, children)
            assert found.settled == ("run-1",)
            assert stage.events()[-1] == "run.queue_settled"
            assert stage.row("run_queue")["status"] == "done"

    play(script)


def test_recovery_of_an_orderly_database_changes_nothing(tmp_path: Path, children: Path) -> None:
    """A second recovery finds nothing, and neither does the first of a new database."""

    async def script() -> None:
        async with staged(tmp_path / "state", runners_max=0) as stage:
            await stage.start()
            before = stage.rows("events")
            found = await recover(stage, children)
            assert found == Recovered(0, 0, (), ())
            assert stage.rows("events") == before

    play(script)


@pytest.mark.slow
def test_processes_of_a_lost_server_end_before_its_claims(tmp_path: Path) -> None:
    """Children of the registry, and those that only the database knows by cookie, are gone."""

    async def script(den: Nest) -> None:
        async with doomed(tmp_path / "state") as lost:
            await lost.start()
            peer = await lost.begun()
            await peer.accepted(start_of("one"))
        known_out, known_in = os.pipe()
        known = den.spawn(SLEEPER, stdout=known_in)
        forgotten_out, forgotten_in = os.pipe()
        forgotten = den.spawn(SLEEPER, worker_epoch=peer.launched.worker_epoch, stdout=forgotten_in)
        os.close(known_in)
        os.close(forgotten_in)
        await here(known_out)
        await here(forgotten_out)
        (den.directory / f"{forgotten.worker_epoch}.json").unlink()
        async with staged(tmp_path / "state", runners_max=0) as stage:
            found = await recover(stage, den.directory)
            assert found.processes_left == 0
            assert cookied(den.worker_epochs) == []
            assert list(den.directory.iterdir()) == []
        for child in (known, forgotten):
            assert child.exit().signal == "SIGTERM"
            await child.kill_tree()

    with nest(tmp_path / "children") as den:
        really(lambda: script(den))


def _finish_without_settling(stage: Stage, permit: Permit) -> None:
    """Commit a run's end without the command that follows it, as a crash between them would."""
    order = Order(
        name="run.propose",
        commands=(FinishRun("run-1", "completed", output=Blob.json(2)),),
        actor=Actor("host", stage.host.host_id),
        command_id=ids.random_id("command"),
        permit=permit,
        renew_until_ms=stage.clock.now_ms() + 60_000,
    )
    with stage.store.transaction() as tx:
        answer, follow_up = dispatch.execute(tx, order, stage.host, route, stage.clock.now_ms())
    assert answer.error is None
    assert follow_up is not None
