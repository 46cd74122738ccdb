"""However a runner ends, its tree is gone first and its run goes on as it should."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import trio

from pi_workflows.base import canonical
from pi_workflows.domain.run.control import PauseRun
from pi_workflows.protocol import runner
from tests.kernel.harness import definition
from tests.server.scripts import applying, settle_of
from tests.server.stage import end_of, play, staged, start_of

QUICK = definition({"one": {"timeoutMs": 60_000}, "two": {}}, [{"from": "one", "to": "two"}])


def test_runner_that_is_not_ready_in_time_is_lost(tmp_path: Path) -> None:
    """Ten seconds after its launch it is ended, and that counts against the run."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.peer()
            began = trio.current_time()
            again = await stage.peer()
            assert peer.process.is_killed
            assert 10 <= trio.current_time() - began < 14
            assert stage.events()[2:] == ["run.requeued", "lease.claimed"]
            assert stage.row("run_queue")["consecutive_errors"] == 1
            launch = await again.expect(runner.Launch)
            assert launch.tag == "start"
            assert launch.generation == 2

    play(script)


@pytest.mark.parametrize("code", ["workflowSourceChanged", "definitionChanged", "importError"])
def test_runner_that_cannot_load_the_workflow_parks_its_run(tmp_path: Path, code: str) -> None:
    """Nothing ran, nothing is tried again, and the reason stands in the queue."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.peer()
            await peer.send(runner.Failed.model_validate({"code": code, "message": "It differs."}))
            peer.leave()
            await stage.ended()
            queue = stage.row("run_queue")
            assert (queue["status"], queue["error_code"]) == ("parked", code)
            assert stage.row("runs")["status"] == "queued"

    play(script)


def test_three_losses_without_a_step_park_the_run(tmp_path: Path) -> None:
    """The second launch follows after one second, the third after five, and there is no fourth."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            began: list[float] = []
            for _ in range(3):
                peer = await stage.begun()
                began.append(trio.current_time())
                await peer.accepted(start_of("one", number=len(began)))
                peer.leave(70)
            await stage.ended()
            assert stage.events()[-1] == "run.worker_no_progress"
            waits = [round(b - a) for a, b in pairwise(began)]
            assert waits == [1, 5]
            queue = stage.row("run_queue")
            assert (queue["status"], queue["error_code"]) == ("parked", "runnerNoProgress")
            await trio.sleep(60)
            assert stage.scheduler.runner_count == 0

    play(script)


def test_progress_clears_the_count_of_losses(tmp_path: Path) -> None:
    """A runner that settled a step before it was lost begins the count anew."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            first = await stage.begun()
            await first.accepted(start_of("one"))
            first.leave(70)
            second = await stage.begun()
            await second.accepted(start_of("one", number=2))
            await second.accepted(end_of("one", number=2), start_of("two"))
            second.leave(70)
            third = await stage.begun()
            assert stage.row("run_queue")["consecutive_errors"] == 0
            await third.accepted(start_of("two", number=2))

    play(script)


def test_lost_runner_leaves_its_exit_and_its_last_words(tmp_path: Path) -> None:
    """The end of what it wrote is kept, its attempt is interrupted, the next launch resumes it."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await peer.write("x" * 100_000 + "\nout of memory\n")
            peer.leave(137)
            again = await stage.peer()
            ended = stage.rows("run_workers")[0]
            assert (ended["status"], ended["exit_code"]) == ("crashed", 137)
            kept = stage.blob(ended["diagnostic_hash"])
            assert len(kept) == 65_536
            assert kept.endswith(b"\nout of memory\n")
            launch = await again.begin()
            assert launch.resume is not None
            assert launch.resume.open is not None
            assert launch.resume.open.node_path == "one"
            assert stage.row("node_attempts")["status"] == "interrupted"

    play(script)


def test_what_a_runner_proposed_before_its_death_counts(tmp_path: Path) -> None:
    """Complete frames are decided though the runner is dead, and a cut one is no violation."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            whole = peer.proposal(end_of("one"), start_of("two"))
            await peer.send_and_cut(whole)
            peer.leave(137)
            again = await stage.begun()
            await again.accepted(start_of("two", number=2))
            assert stage.rows("node_attempts")[0]["status"] == "completed"
            requeued = [row for row in stage.rows("events") if row["event_type"] == "run.requeued"]
            fact = canonical.decode(stage.blob(requeued[0]["payload_hash"]))
            assert isinstance(fact, dict)
            assert fact["reason"] == "the runner ended without a word (exit status 137)"

    play(script)


def test_overdue_node_times_out_and_its_run_goes_on(tmp_path: Path) -> None:
    """Five seconds after its budget its runner is ended; the next finds a timed-out step."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start(workflow=QUICK)
            peer = await stage.begun()
            began = trio.current_time()
            await peer.accepted(start_of("one", timeout_ms=60_000))
            again = await stage.peer()
            assert peer.process.is_killed
            assert 65 <= trio.current_time() - began < 66
            launch = await again.begin()
            assert launch.resume is not None
            assert launch.resume.last is not None
            assert launch.resume.last.outcome == "timed_out"
            attempt = stage.row("node_attempts")
            assert attempt["status"] == "timed_out"
            assert stage.row("attempt_active_intervals")["elapsed_ms"] == 65_000
            assert stage.row("run_queue")["consecutive_errors"] == 0
            assert stage.rows("run_workers")[0]["status"] == "timedOut"

    play(script)


def test_node_without_a_limit_is_never_overdue(tmp_path: Path) -> None:
    """A budget of zero milliseconds is none."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            workflow = definition({"one": {"timeoutMs": 0}})
            await stage.start(workflow=workflow)
            peer = await stage.begun()
            await peer.accepted(start_of("one", timeout_ms=0))
            await trio.sleep(300)
            await peer.accepted(end_of("one"))

    play(script)


@pytest.mark.parametrize(
    ("recovery", "effect", "attempt", "queue"),
    [
        ("idempotent", "cancelled", "timed_out", "running"),
        ("manual", "ambiguous", "interrupted", "parked"),
    ],
)
def test_effect_of_an_overdue_node_is_uncertain(
    tmp_path: Path, recovery: str, effect: str, attempt: str, queue: str
) -> None:
    """An idempotent effect ends with its visit; a manual one waits for a person."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, _ = await applying(stage, recovery, timeoutMs=60_000)
            await trio.sleep(66)
            assert peer.process.is_killed
            if queue == "parked":
                await stage.ended()
            else:
                await (await stage.begun()).send_log("goes on")
            assert stage.row("effects")["status"] == effect
            assert stage.rows("node_attempts")[0]["status"] == attempt
            assert stage.row("run_queue")["status"] == queue

    play(script)


@pytest.mark.parametrize(
    ("recovery", "effect", "queue"),
    [("idempotent", "pending", "running"), ("manual", "ambiguous", "parked")],
)
def test_effect_of_a_lost_runner(tmp_path: Path, recovery: str, effect: str, queue: str) -> None:
    """An idempotent effect may be tried again; a manual one waits for a person."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, _ = await applying(stage, recovery)
            peer.leave(137)
            if queue == "parked":
                await stage.ended()
            else:
                await (await stage.begun()).send_log("goes on")
            assert stage.row("effects")["status"] == effect
            assert stage.row("effect_attempts")["finished_at"] is not None
            assert stage.row("run_queue")["status"] == queue

    play(script)


def test_runner_that_gives_up_its_manual_effect_after_a_pause(tmp_path: Path) -> None:
    """A paused run whose effect did not settle in its time is ambiguous, not merely paused."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, _ = await applying(stage, "manual")
            await stage.do(PauseRun("run-1"))
            await peer.expect(runner.Stop)
            peer.leave()
            await stage.ended()
            assert stage.row("effects")["status"] == "ambiguous"
            assert stage.row("runs")["paused"] == 1
            assert stage.row("run_queue")["error_code"] == "effectAmbiguous"

    play(script)


def test_shutdown_lets_runners_finish_and_stores_nothing_about_their_runs(tmp_path: Path) -> None:
    """What was proposed is answered, the rest is for whoever takes over."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage, "manual")
            stage.scheduler.close()
            uncertain: list[str] = []

            async def shut_down() -> None:
                uncertain.extend(await stage.supervisor.shut_down())

            async with trio.open_nursery() as nursery:
                nursery.start_soon(shut_down)
                stop = await peer.expect(runner.Stop)
                assert (stop.reason, stop.grace_ms) == ("shutdown", 5_000)
                await peer.accepted(settle_of(effect_id))
                peer.leave()
            assert uncertain == ["run-1"]
            assert stage.events()[-1] == "attempt.started"
            assert stage.row("run_queue")["status"] == "running"
            assert not peer.process.is_killed

    play(script)


def test_shutdown_ends_a_runner_that_stays(tmp_path: Path) -> None:
    """Five seconds are what it gets."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            stage.scheduler.close()
            began = trio.current_time()
            assert await stage.supervisor.shut_down() == ()
            assert peer.process.is_killed
            assert 5 <= trio.current_time() - began < 8
            assert stage.events()[-1] == "attempt.started"

    play(script)


def test_runner_whose_channel_stays_open_after_its_end_is_lost(tmp_path: Path) -> None:
    """A process that inherited the channel cannot keep its run."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            peer.process.end_but_hold()
            await stage.peer()
            assert "run.requeued" in stage.events()

    play(script)


def test_claim_that_ran_out_is_a_handoff(tmp_path: Path) -> None:
    """Without renewal a proposal after a minute is claimLost; the run is queued, and no loss."""

    async def script() -> None:
        async with staged(tmp_path / "state", is_timed=False) as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await trio.sleep(61)
            late = await peer.ask(end_of("one"), start_of("two"))
            assert late.outcome == "claimLost"
            assert late.detail is not None
            assert late.detail.code == "expired"
            peer.leave()
            await stage.begun()
            assert stage.rows("run_workers")[0]["status"] == "claimLost"
            assert stage.row("run_queue")["consecutive_errors"] == 0

    play(script)


def test_refused_start_of_a_process_counts_and_a_missing_project_parks(tmp_path: Path) -> None:
    """A machine that starts no process loses launches; a project that is gone parks its run."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            stage.start_error = OSError(11, "Resource temporarily unavailable")
            await stage.start()
            await trio.sleep(30)
            assert stage.row("run_queue")["error_code"] == "runnerNoProgress"
            stage.start_error = FileNotFoundError(2, "No such file or directory")
            await stage.start("run-2", project_path="/does/not/exist")
            await trio.sleep(1)
            assert stage.rows("run_queue")[1]["error_code"] == "workflowSourceChanged"

    play(script)


def test_faulty_runner_fails_its_run_with_the_fault(tmp_path: Path) -> None:
    """The failure names what the runner did wrong; a manual effect under way is ambiguous."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, _ = await applying(stage, "manual")
            refused = await peer.ask(end_of("act"))
            assert refused.outcome == "rejected"
            await stage.ended()
            assert stage.row("runs")["status"] == "failed"
            error = canonical.decode(stage.blob(stage.row("runs")["error_hash"]))
            assert isinstance(error, dict)
            assert error["code"] == "effectApplying"
            statuses = {row["effect_type"]: row["status"] for row in stage.rows("effects")}
            assert statuses["deploy"] == "ambiguous"

    play(script)
