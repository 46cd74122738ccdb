"""Due runs get runners in the order of their turn, within the limit, and never two for one run."""

from __future__ import annotations

from pathlib import Path

import trio

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.protocol import proposals as wire
from pi_workflows.protocol import runner
from tests.kernel.harness import definition
from tests.server.clocks import TrioClock
from tests.server.stage import Peer, end_of, finish_of, play, staged, start_of

RETRY: Json = {"maxAttempts": 2, "on": ["failed"], "delayMs": 90_000, "backoff": 1.0}
LATER = definition({"one": {"retry": RETRY}})
ASKING = definition(
    {"ask": {"type": "checkpoint", "summary": "Go on?", "timeoutMs": 0}, "two": {}},
    [{"from": "ask", "to": "two"}],
)


class JumpingClock(TrioClock):
    """Trio's time, beside a wall clock that somebody sets."""

    def __init__(self) -> None:
        self.jump_ms = 0

    def now_ms(self) -> int:
        """Return the wall time."""
        return super().now_ms() + self.jump_ms


async def through(peer: Peer) -> None:
    """Take a run of one node to its end."""
    await peer.accepted(start_of("one", run_id=peer.run_id))
    await peer.accepted(end_of("one", run_id=peer.run_id), finish_of())
    peer.leave()


def test_runs_get_runners_in_order_and_within_the_limit(tmp_path: Path) -> None:
    """The third of three runs waits until one of two runners is gone."""

    async def script() -> None:
        async with staged(tmp_path / "state", runners_max=0) as stage:
            for number in range(3):
                await stage.start(f"run-{number}", definition({"one": {}}))
                await trio.sleep(1)
            stage.scheduler.runners_max = 2
            await stage.start("run-3", definition({"one": {}}))
            peers = [await stage.begun(), await stage.begun()]
            await trio.sleep(10)
            assert stage.scheduler.runner_count == stage.scheduler.runners_max == 2
            assert set(stage.supervisor.runs) == {"run-0", "run-1"}
            first, second = sorted(peers, key=lambda peer: peer.run_id)
            await through(first)
            third = await stage.begun()
            assert set(stage.supervisor.runs) == {"run-1", "run-2"}
            await through(second)
            await through(third)
            await through(await stage.begun())
            await stage.ended()
            assert stage.scheduler.is_idle

    play(script)


def test_cancel_needs_no_capacity(tmp_path: Path) -> None:
    """A run that waits for a runner is cancelled while every runner is busy, and gets none."""

    async def script() -> None:
        async with staged(tmp_path / "state", runners_max=1) as stage:
            await stage.start("run-1")
            peer = await stage.begun()
            await stage.start("run-2")
            answer = await stage.do(CancelRun("run-2"))
            assert answer.outcome is Outcome.ACCEPTED
            peer.leave(70)
            await trio.sleep(2)
            assert set(stage.supervisor.runs) == {"run-1"}

    play(script)


def test_delayed_retry_waits_without_a_runner(tmp_path: Path) -> None:
    """A retry in ninety seconds frees its runner, keeps the server busy, and starts on time."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start(workflow=LATER)
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            began = trio.current_time()
            await peer.accepted(end_of("one", outcome="failed"), wire.Requeue(delay_ms=90_000))
            peer.leave()
            await stage.ended()
            assert not stage.scheduler.is_idle
            again = await stage.begun()
            assert trio.current_time() - began == 90
            await again.accepted(start_of("one", number=2))
            assert stage.row("run_queue")["consecutive_errors"] == 0

    play(script)


def test_wall_clock_decides_what_is_due(tmp_path: Path) -> None:
    """A clock set back delays a retry by as much; set forward, it is noticed within ten seconds."""
    clock = JumpingClock()

    async def script() -> None:
        # Claims are of no interest here: no timer renews them, and no runner lives long.
        async with staged(tmp_path / "state", clock=clock, is_timed=False) as stage:
            await stage.start(workflow=LATER)
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await peer.accepted(end_of("one", outcome="failed"), wire.Requeue(delay_ms=90_000))
            peer.leave()
            began = trio.current_time()
            await trio.sleep(30)
            clock.jump_ms -= 3_600_000
            await trio.sleep(600)
            assert stage.scheduler.runner_count == 0
            clock.jump_ms += 3_600_000
            again = await stage.begun()
            assert trio.current_time() - began <= 640
            await again.accepted(start_of("one", number=2))

    play(script)


def test_waiting_run_holds_no_runner_and_goes_on_with_its_answer(tmp_path: Path) -> None:
    """The question ends the runner's work; the answer launches one that finishes the attempt."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start(workflow=ASKING)
            peer = await stage.begun()
            start = start_of("ask", node_type="checkpoint", timeout_ms=0)
            await peer.accepted(start)
            ask = wire.WaitForInput.model_validate(
                {
                    "attempt_id": start.attempt_id,
                    "kind": "checkpoint",
                    "contract": {"json": {"summary": "Go on?"}},
                }
            )
            await peer.accepted(ask)
            peer.leave()
            await stage.ended()
            assert stage.scheduler.is_idle
            request_id = str(stage.row("interactive_requests")["request_id"])
            answer = Blob.json("yes")
            await stage.do(AnswerCheckpoint("run-1", request_id, 1, "answer-1", "key-1", answer))
            again = await stage.peer()
            launch = await again.begin()
            assert launch.resume is not None
            opened = launch.resume.open
            assert opened is not None
            assert opened.attempt_id == start.attempt_id
            assert opened.accepted is not None
            await again.accepted(end_of("ask", "yes"), start_of("two"))
            assert stage.row("run_queue")["consecutive_errors"] == 0

    play(script)


def test_resumed_run_waits_for_the_end_of_its_old_runner(tmp_path: Path) -> None:
    """A pause and a resume in a moment never give a run two runners."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await stage.do(PauseRun("run-1"))
            await stage.do(ResumeRun("run-1"))
            await peer.expect(runner.Stop)
            await trio.sleep(2)
            assert stage.row("run_queue")["status"] == "queued"
            assert stage.scheduler.runner_count == 1
            assert stage.scheduler.live_runs() == frozenset()
            peer.leave()
            again = await stage.begun()
            await again.accepted(start_of("one", number=2))

    play(script)


def test_pause_that_is_committed_with_the_claim_ends_it(tmp_path: Path) -> None:
    """A runner that was launched in vain may not begin, and its run has no mark against it."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            while not stage.supervisor.runs:
                await trio.lowlevel.checkpoint()
            await stage.do(PauseRun("run-1"))
            peer = await stage.begun()
            late = await peer.receive()
            assert late is None or isinstance(late, runner.Stop)
            await stage.ended()
            assert stage.row("run_queue")["status"] == "parked"
            assert stage.row("run_queue")["consecutive_errors"] == 0
            assert {row["owner_id"] for row in stage.rows("leases")} == {None}

    play(script)


def test_closed_scheduler_claims_nothing_more(tmp_path: Path) -> None:
    """A server that stops leaves queued runs to the next one."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start("run-1")
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            stage.scheduler.close()
            await stage.start("run-2")
            await trio.sleep(5)
            assert set(stage.supervisor.runs) == {"run-1"}

    play(script)
