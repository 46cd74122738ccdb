"""What a runner proposes is proved, ordered, and durable before it is answered."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import pytest
import trio

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.kernel.order import Order
from pi_workflows.protocol import content, runner
from pi_workflows.protocol import proposals as wire
from tests.kernel.harness import definition
from tests.server.scripts import applying, reserve_of, settle_of, update_of
from tests.server.stage import end_of, finish_of, play, staged, start_of

MIB = 1_048_576


def test_stored_envelope_is_exactly_the_launch_frame(tmp_path: Path) -> None:
    """What a runner was launched with can be read again, and holds no token and no environment."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start(run_input={"task": "check"})
            peer = await stage.peer()
            launch = await peer.expect(runner.Launch)
            stored = stage.blob(stage.row("run_workers")["launch_envelope_hash"])
            assert stored + b"\n" == runner.encode(launch)
            assert launch.tag == "start"
            assert launch.input == content.JsonRef(value={"task": "check"})
            assert b"/secret" not in stored
            assert b"token" not in stored
            assert peer.launched.client == {"TZ": "UTC", "PATH": "/secret"}

    play(script)


def test_run_goes_from_ready_to_its_end(tmp_path: Path) -> None:
    """Each boundary is accepted in one round trip, and the runner's row says how it ended."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            first = await peer.accepted(start_of("one"))
            assert stage.scheduler.live_runs() == {"run-1"}
            second = await peer.accepted(end_of("one", 1), start_of("two"))
            assert second.run_revision == first.run_revision + 2
            await peer.accepted(end_of("two", 2), finish_of(2))
            peer.leave()
            await stage.ended()
            assert stage.events()[-2:] == ["run.completed", "run.queue_settled"]
            worker = stage.row("run_workers")
            assert (worker["status"], worker["exit_code"]) == ("exited", 0)
            assert worker["pid"] == peer.process.pid
            assert worker["ready_at"] is not None
            assert not peer.process.is_killed
            assert stage.changed == ["run-1", "run-1"]

    play(script)


def test_proposals_that_come_together_are_committed_together(tmp_path: Path) -> None:
    """A runner that runs ahead pays for few commits, and its results come in its own order."""
    names = [f"n{number}" for number in range(12)]
    chain = definition(
        {name: {} for name in names},
        [{"from": a, "to": b} for a, b in pairwise(names)],
    )

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start(workflow=chain)
            peer = await stage.begun()
            await peer.accepted(start_of("n0"))
            together = [peer.proposal(end_of(a), start_of(b)) for a, b in pairwise(names)]
            before = stage.writer.latency.report().samples
            await peer.send(*together)
            results = [await peer.expect(runner.Result) for _ in together]
            assert [result.seq for result in results] == [each.seq for each in together]
            assert {result.outcome for result in results} == {"accepted"}
            assert stage.writer.latency.report().samples - before < len(together) / 2

    play(script)


def test_refused_proposal_takes_those_behind_it_along(tmp_path: Path) -> None:
    """After the first refusal all that was already sent is claimLost, and the run fails."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await peer.send(
                peer.proposal(end_of("one"), start_of("elsewhere")),
                peer.proposal(end_of("one"), start_of("two")),
            )
            refused = await peer.expect(runner.Result)
            assert refused.outcome == "rejected"
            assert refused.detail is not None
            assert refused.detail.code == "routeMismatch"
            behind = await peer.receive()
            assert behind is None or isinstance(behind, runner.Result)
            assert behind is None or behind.outcome == "claimLost"
            await stage.ended()
            assert peer.process.is_killed
            assert stage.events()[-2:] == ["run.failed", "run.queue_settled"]
            error = canonical.decode(stage.blob(stage.row("runs")["error_hash"]))
            assert error == {"code": "routeMismatch", "message": "elsewhere is not the next node."}

    play(script)


def test_repeated_proposal_is_adopted_and_another_under_its_number_is_refused(
    tmp_path: Path,
) -> None:
    """A number means one proposal for ever."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            first = peer.proposal(start_of("one"))
            await peer.send(first)
            result = await peer.expect(runner.Result)
            await peer.send(first)
            again = await peer.expect(runner.Result)
            assert (again.outcome, again.run_revision) == ("adopted", result.run_revision)
            await peer.accepted(update_of(ids.attempt_id("run-1", "one", 1)))
            await peer.send(first)
            assert (await peer.expect(runner.Result)).outcome == "adopted"
            await peer.accepted(update_of(ids.attempt_id("run-1", "one", 1)))
            await peer.send(wire.Propose(seq=first.seq, commands=(end_of("one"),)))
            other = await peer.expect(runner.Result)
            assert other.outcome == "rejected"
            assert other.detail is not None
            assert other.detail.code == "requestReused"
            await stage.ended()
            assert "run.failed" in stage.events()

    play(script)


@pytest.mark.parametrize(
    "bad",
    [
        wire.Propose(seq=7, commands=(start_of("one"),)),
        runner.Failed(code="importError", message="too late"),
        content.ContentPut(
            sha256="0" * 64, media_type="application/json", content_bytes=1, offset=0, data="MQ=="
        ),
        runner.Child(
            state="registered", pid=1, start_identity="1", process_group=1, attempt_id="attempt-1"
        ),
    ],
    ids=["gap", "word after ready", "wrong digest", "registers itself"],
)
def test_runner_that_breaks_the_protocol_is_ended_and_counted(
    tmp_path: Path, bad: runner.FromRunner
) -> None:
    """Its run goes back to the queue; nothing that it sent is believed."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.send(bad)
            again = await stage.peer()
            assert peer.process.is_killed
            assert stage.events()[3:] == ["run.requeued", "lease.claimed"]
            assert stage.row("run_queue")["consecutive_errors"] == 1
            assert (await again.expect(runner.Launch)).tag == "resume"

    play(script)


def test_refused_update_is_an_answer_for_the_author(tmp_path: Path) -> None:
    """An update that may not be is refused with its reason, and the runner goes on."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            refused = await peer.ask(update_of("attempt-of-nobody"))
            assert refused.outcome == "rejected"
            assert refused.detail is not None
            assert refused.detail.code == "attemptMismatch"
            attempt_id = ids.attempt_id("run-1", "one", 1)
            await peer.accepted(update_of(attempt_id))
            large = await peer.ask(update_of(attempt_id, "x" * 70_000))
            assert large.detail is not None
            assert large.detail.code == "updateTooLarge"
            await peer.accepted(end_of("one"), start_of("two"))

    play(script)


def test_updates_above_their_rate_are_refused_and_not_stored(tmp_path: Path) -> None:
    """A burst of a hundred passes, then one more is refused until time has gone by."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            attempt_id = ids.attempt_id("run-1", "one", 1)
            for number in range(100):
                await peer.accepted(update_of(attempt_id, number))
            refused = await peer.ask(update_of(attempt_id, 100))
            assert refused.detail is not None
            assert refused.detail.code == "updateRate"
            assert len(stage.rows("workflow_updates")) == 100
            # Two tokens in a tenth of a second.
            await trio.sleep(0.1)
            await peer.accepted(update_of(attempt_id, 101))

    play(script)


def test_effect_is_claimed_before_its_callback_may_start(tmp_path: Path) -> None:
    """The numbered try and its claim are durable with the answer, until the settlement."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage)
            held = stage.supervisor.runs["run-1"]
            (permit,) = held.effects.values()
            leases = {row["resource_id"]: row for row in stage.rows("leases")}
            lease = leases[permit.resource_id]
            assert lease["owner_id"] == stage.host.host_id
            assert lease["token_hash"] == hashlib.sha256(permit.token).digest()
            assert permit.token != held.permit.token
            assert stage.row("effect_attempts")["owner_id"] == peer.launched.worker_epoch
            await peer.accepted(settle_of(effect_id))
            assert held.effects == {}
            leases = {row["resource_id"]: row for row in stage.rows("leases")}
            assert leases[permit.resource_id]["owner_id"] is None
            adopted = await peer.ask(reserve_of())
            assert adopted.outcome == "adopted"
            assert isinstance(adopted.values, wire.EffectReservation)
            assert adopted.values.status == "applied"
            assert adopted.values.result == content.JsonRef(value={"id": 7})
            other = await peer.ask(reserve_of(request="something else"))
            assert other.outcome == "rejected"
            assert other.detail is not None
            assert other.detail.code == "effectConflict"
            await peer.accepted(end_of("act"), start_of("two"))

    play(script)


def test_large_values_travel_in_parts_and_are_given_up_when_named(tmp_path: Path) -> None:
    """A value over the inline bound is put, named by one proposal, and stored with it."""
    large = Blob.json("x" * MIB)

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await peer.send(*content.puts(large))
            finish = end_of("one").model_copy(update={"output": content.BlobRef.of(large)})
            assert isinstance(finish, wire.FinishAttempt)
            await peer.accepted(finish, start_of("two"))
            assert stage.supervisor.active_digests == frozenset()
            assert stage.blob(large.digest) == large.content
            await peer.send(*content.puts(large))
            await peer.accepted(end_of("two"))
            assert stage.supervisor.active_digests == {large.hex}
            end = finish_of().model_copy(update={"output": content.BlobRef.of(large)})
            refused = await peer.ask(end)
            assert refused.detail is not None
            assert refused.detail.code == "outputMismatch"

    play(script)


def test_value_that_was_named_or_never_put_is_none(tmp_path: Path) -> None:
    """A runner that names a value a second time, or that it made up, is ended."""
    large = Blob.json("x" * MIB)

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await peer.send(*content.puts(large))
            finish = end_of("one").model_copy(update={"output": content.BlobRef.of(large)})
            await peer.accepted(finish, start_of("two"))
            again = end_of("two").model_copy(update={"output": content.BlobRef.of(large)})
            await peer.send(peer.proposal(again))
            await stage.peer()
            assert peer.process.is_killed
            assert stage.supervisor.active_digests == frozenset()

    play(script)


def test_content_that_nothing_names_is_bounded(tmp_path: Path) -> None:
    """A runner that puts more than 16 MiB without naming it is ended."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            for number in range(3):
                blob = Blob.json(f"{number}" + "x" * 7 * MIB)
                await peer.send(*content.puts(blob))
            await stage.peer()
            assert peer.process.is_killed

    play(script)


def test_runner_gets_what_its_run_names_and_nothing_else(tmp_path: Path) -> None:
    """A large input comes in parts; a digest of another run is answered with an error."""
    run_input = "y" * 300_000

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start("run-2", run_input="of another run")
            await (await stage.begun()).accepted(start_of("one", run_id="run-2"))
            await stage.start(run_input=run_input)
            peer = await stage.peer()
            launch = await peer.begin()
            assert isinstance(launch.input, content.BlobRef)
            await peer.send(content.ContentGet(sha256=launch.input.sha256))
            part = await peer.expect(content.ContentPart)
            assembly = content.Assembly(part)
            assert assembly.add(part) == Blob.json(run_input)
            foreign = Blob.json("of another run").hex
            await peer.send(content.ContentGet(sha256=foreign))
            missing = await peer.expect(content.ContentMissing)
            assert missing.sha256 == foreign

    play(script)


def test_shell_is_written_down_before_it_may_execute(tmp_path: Path) -> None:
    """The word that lets a shell go on comes after its entry."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            shell = runner.Child(
                state="starting", pid=5, start_identity="1", process_group=5, attempt_id="a"
            )
            await peer.send(shell)
            registered = await peer.expect(runner.Child)
            assert registered == shell.model_copy(update={"state": "registered"})
            assert peer.process.shells == [5]
            await peer.send(shell.model_copy(update={"state": "ended"}))
            await peer.accepted(start_of("one"))
            assert peer.process.shells == []

    play(script)


def test_pause_ends_the_claim_before_the_runner_hears_of_it(tmp_path: Path) -> None:
    """What the runner proposes afterwards is claimLost; its leaving is no loss."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await stage.do(PauseRun("run-1"))
            stop = await peer.expect(runner.Stop)
            assert (stop.reason, stop.grace_ms) == ("pause", 5_000)
            late = await peer.ask(end_of("one"), start_of("two"))
            assert late.outcome == "claimLost"
            peer.leave()
            await stage.ended()
            assert stage.events()[-1] == "run.paused"
            assert stage.row("run_queue")["consecutive_errors"] == 0
            assert stage.row("run_workers")["status"] == "cancelled"

    play(script)


def test_cancel_ends_a_runner_that_does_not_leave(tmp_path: Path) -> None:
    """The run is cancelled at once; a runner that ignores it is ended five seconds later."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            await stage.start()
            peer = await stage.begun()
            await peer.accepted(start_of("one"))
            await stage.do(CancelRun("run-1"))
            assert stage.row("runs")["status"] == "cancelled"
            assert (await peer.expect(runner.Stop)).reason == "cancel"
            began = trio.current_time()
            await stage.ended()
            assert peer.process.is_killed
            assert 5 <= trio.current_time() - began < 8
            assert stage.events()[-2:] == ["run.cancelled", "run.queue_settled"]

    play(script)


def test_pause_lets_a_manual_effect_come_to_its_end(tmp_path: Path) -> None:
    """The claim stays for this one settlement, which ends it; nothing else is accepted."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage, "manual", timeoutMs=60_000)
            await trio.sleep(10)
            await stage.do(PauseRun("run-1"))
            stop = await peer.expect(runner.Stop)
            assert (stop.reason, stop.grace_ms) == ("pause", 55_000)
            lost = await peer.ask(update_of(ids.attempt_id("run-1", "act", 1)))
            assert lost.outcome == "claimLost"
            await peer.accepted(settle_of(effect_id))
            peer.leave()
            await stage.ended()
            assert stage.events()[-2:] == ["run.paused", "lease.released"]
            assert stage.row("node_attempts")["status"] == "interrupted"
            queue = stage.row("run_queue")
            assert (queue["status"], queue["consecutive_errors"]) == ("parked", 0)
            statuses = {row["effect_type"]: row["status"] for row in stage.rows("effects")}
            assert statuses == {"deploy": "applied"}

    play(script)


def test_resume_during_a_manual_effect_queues_the_run_after_it(tmp_path: Path) -> None:
    """The runner that was told to leave settles its effect; the next one goes on with it."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage, "manual")
            await stage.do(PauseRun("run-1"))
            await stage.do(ResumeRun("run-1"))
            await peer.expect(runner.Stop)
            await peer.accepted(settle_of(effect_id))
            peer.leave()
            after = await stage.begun()
            await after.accepted(start_of("act", number=2, node_type="action"))
            assert stage.events()[-4:] == [
                "lease.released",
                "lease.claimed",
                "run.resumed",
                "attempt.started",
            ]

    play(script)


@pytest.mark.parametrize("_turn", range(4))
def test_settlement_that_crosses_a_pause_ends_the_claim_too(tmp_path: Path, _turn: int) -> None:
    """Whichever of the two is decided first, the effect is applied and the run stands still."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage, "manual")
            await peer.send(peer.proposal(settle_of(effect_id)))
            pause = Order("run.pause", (PauseRun("run-1"),), Actor("control"), "pause-1")
            stage.writer.hand_over(pause)
            await stage.ended()
            assert stage.row("effect_attempts")["outcome"] == "applied"
            queue = stage.row("run_queue")
            assert (queue["status"], queue["consecutive_errors"]) == ("parked", 0)
            assert stage.row("node_attempts")["status"] == "interrupted"
            assert {row["owner_id"] for row in stage.rows("leases")} == {None}

    play(script)


def test_idempotent_effect_does_not_hold_up_a_pause(tmp_path: Path) -> None:
    """It may be done again, so its runner ends at once and it is pending again."""

    async def script() -> None:
        async with staged(tmp_path / "state") as stage:
            peer, effect_id = await applying(stage)
            await stage.do(PauseRun("run-1"))
            await peer.expect(runner.Stop)
            assert (await peer.ask(settle_of(effect_id))).outcome == "claimLost"
            peer.leave()
            await stage.ended()
            assert stage.row("effects")["status"] == "pending"

    play(script)
