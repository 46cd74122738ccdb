"""A command is done once, however often it is asked for and whoever stops listening."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from pi_workflows.base.errors import Outcome
from pi_workflows.base.sql import Statement
from pi_workflows.protocol.envelope import Request
from pi_workflows.store import backup
from pi_workflows.store.inactive import open_inactive
from tests.server.bench import run, server


def test_a_repeated_command_adopts_its_receipt_after_a_reconnect(state_dir: Path) -> None:
    """The same key and content on another connection give the first receipt; nothing happens."""

    async def body() -> None:
        async with server(state_dir) as bench:
            first = await bench.connect()
            await bench.started(first)
            done = await first.ask("run.pause", run_id="run-1", key="k")
            await first.ask("run.resume", run_id="run-1")
            await first.stream.aclose()
            second = await bench.connect()
            again = await second.ask("run.pause", run_id="run-1", key="k")
            assert (done.outcome, again.outcome) == (Outcome.ACCEPTED, Outcome.ADOPTED)
            assert (again.receipt, again.revision) == (done.receipt, done.revision)
            view = await second.ask("view.run.get", run_id="run-1")
            assert view.revision == 3

    run(body)


def test_receipts_outlive_the_server(state_dir: Path) -> None:
    """A server that was stopped and started again still knows what was asked."""

    async def body() -> None:
        for expected in (Outcome.ACCEPTED, Outcome.ADOPTED):
            async with server(state_dir) as bench:
                peer = await bench.connect()
                reply = await peer.ask("run.start", bench.start(), run_id="run-1", key="k")
                assert reply.outcome is expected

    run(body)


@pytest.mark.parametrize("operation", ["run.pause", "run.resume", "state.backup", "server.stop"])
def test_a_reused_key_is_a_conflict(state_dir: Path, operation: str) -> None:
    """A key that belongs to another request is refused, whatever kind of command it is."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await peer.ask("run.start", bench.start(), run_id="run-1", key="k")
            payload = {"destination": str(state_dir.parent / "copy")}
            reply = await peer.ask(
                operation,
                dict(payload) if operation == "state.backup" else {},
                run_id="run-1" if operation.startswith("run.") else None,
                key="k",
            )
            assert reply.outcome is Outcome.CONFLICT
            assert reply.receipt == {"code": "requestReused"}
            assert not (state_dir.parent / "copy").exists()
            assert (await peer.ask("run.list")).outcome is Outcome.ACCEPTED

    run(body)


def test_the_receipt_comes_before_the_payload(state_dir: Path) -> None:
    """A reused key is a conflict also when the new payload would be refused."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await peer.ask("run.start", bench.start(), run_id="run-1", key="k")
            reply = await peer.ask("run.pause", {"surprise": 1}, run_id="run-1", key="k")
            assert reply.outcome is Outcome.CONFLICT

    run(body)


def test_a_key_belongs_to_its_client(state_dir: Path) -> None:
    """Two clients may use the same key for two things."""

    async def body() -> None:
        async with server(state_dir) as bench:
            one, two = await bench.connect("one"), await bench.connect("two")
            await one.ask("run.start", bench.start(), run_id="run-1", key="k")
            reply = await two.ask("run.pause", run_id="run-1", key="k")
            assert reply.outcome is Outcome.ACCEPTED

    run(body)


def test_refusals_by_the_domain_are_remembered(state_dir: Path) -> None:
    """A refusal is replayed as it was stored, although it would be accepted by now."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            refused = await peer.ask("run.pause", run_id="run-1", key="k")
            await bench.started(peer)
            again = await peer.ask("run.pause", run_id="run-1", key="k")
            assert refused.outcome is again.outcome is Outcome.NOT_FOUND
            assert (refused.receipt, refused.error) == (again.receipt, again.error)

    run(body)


def test_refusals_before_the_domain_are_not_remembered(state_dir: Path) -> None:
    """A payload that was refused leaves its key free for the right one."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            wrong = bench.start(title="")
            assert (
                await peer.ask("run.start", wrong, run_id="run-1", key="k")
            ).outcome is Outcome.REJECTED
            right = await peer.ask("run.start", bench.start(), run_id="run-1", key="k")
            assert right.outcome is Outcome.ACCEPTED

    run(body)


def test_pitfall_24_a_client_that_left_still_leaves_its_receipt(state_dir: Path) -> None:
    """A command whose client is gone before the commit is done, and the next one adopts it."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            leaving: list[Request] = []
            for number in range(8):
                gone = await bench.connect()
                leaving.append(gone.request("run.pause", run_id="run-1", key=f"k-{number}"))
                await gone.send(leaving[-1])
                await trio.lowlevel.checkpoint()
                await trio.aclose_forcefully(gone.stream)
            await trio.testing.wait_all_tasks_blocked()
            for request in leaving:
                again = await peer.ask("run.pause", run_id="run-1", key=request.idempotency_key)
                assert again.outcome is Outcome.ADOPTED
            view = await peer.ask("view.run.get", run_id="run-1")
            assert view.revision == 2

    run(body)


def test_a_backup_is_made_once(state_dir: Path) -> None:
    """Two requests of one key, one after the other or at once, make one file and one receipt."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect(), await bench.connect()
            target = state_dir.parent / "copy.sqlite"
            first = peer.request("state.backup", {"destination": str(target)}, key="k")
            second = other.request("state.backup", {"destination": str(target)}, key="k")
            await peer.send(first)
            await other.send(second)
            replies = await peer.response(first), await other.response(second)
            assert {reply.outcome for reply in replies} == {Outcome.ACCEPTED, Outcome.ADOPTED}
            receipt = {"destination": str(target), "bytes": target.stat().st_size}
            assert [reply.receipt for reply in replies] == [receipt, receipt]
            third = await peer.ask("state.backup", {"destination": str(target)})
            assert third.outcome is Outcome.REJECTED

    run(body)


def test_commands_are_done_while_a_backup_is_made(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of many pages leaves the writer free between its steps."""
    monkeypatch.setattr(backup, "BACKUP_STEP_PAGES", 1)

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect(), await bench.connect()
            await bench.started(peer)
            target = state_dir.parent / "copy.sqlite"
            request = peer.request("state.backup", {"destination": str(target)})
            await peer.send(request)
            commands = 0
            with trio.CancelScope() as until_copied:

                async def copied() -> None:
                    assert (await peer.response(request)).outcome is Outcome.ACCEPTED
                    until_copied.cancel()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(copied)
                    while True:
                        await other.ask("run.pause", run_id="run-1")
                        commands += 1
            assert commands > 5
            with open_inactive(target, live_directory=state_dir) as copy:
                assert copy.one(int, Statement("runs", "SELECT count(*) FROM runs")) == 1

    run(body)


def test_a_long_command_outlives_its_client(state_dir: Path) -> None:
    """A backup whose client left at once is completed, and its receipt waits for a repetition."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, gone = await bench.connect(), await bench.connect()
            target = state_dir.parent / "copy.sqlite"
            request = gone.request("state.backup", {"destination": str(target)}, key="k")
            await gone.send(request)
            while not bench.parts.services.long_work.active:
                await trio.lowlevel.checkpoint()
            await trio.aclose_forcefully(gone.stream)
            reply = await peer.ask("state.backup", {"destination": str(target)}, key="k")
            assert reply.outcome is Outcome.ADOPTED
            assert target.exists()

    run(body)


def test_a_stop_waits_for_a_long_command_and_its_reply(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup that is under way when the server is told to stop is completed and answered."""
    monkeypatch.setattr(backup, "BACKUP_STEP_PAGES", 1)

    async def body() -> None:
        async with server(state_dir, is_compared=False) as bench:
            peer, other = await bench.connect(), await bench.connect()
            target = state_dir.parent / "copy.sqlite"
            request = peer.request("state.backup", {"destination": str(target)})
            await peer.send(request)
            while not bench.parts.services.long_work.active:
                await trio.lowlevel.checkpoint()
            assert (await other.ask("server.stop")).outcome is Outcome.ACCEPTED
            assert bench.parts.services.long_work.active == 1
            assert (await peer.response(request)).outcome is Outcome.ACCEPTED
            assert target.exists()

    run(body)
