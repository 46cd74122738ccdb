"""A server begins with recovery, leaves when nobody needs it, and ends in one file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import Corrupt, Outcome, OutcomeUnknown
from pi_workflows.base.limits import IDLE_EXIT_MS, SERVER_CLAIM_MS
from pi_workflows.kernel import verify
from pi_workflows.kernel.group import Kernel, Result
from pi_workflows.server.audit_hook import LiveFileTouchedError
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.store.volatile import server_state
from tests.server.bench import run, server
from tests.server.clocks import START_MS, SleepyClock

_IDLE_SECONDS = IDLE_EXIT_MS / 1_000


def _files(directory: Path) -> list[str]:
    """Return the names of the database's files."""
    return sorted(path.name for path in directory.iterdir() if path.is_file())


def test_an_orderly_stop_leaves_one_file(state_dir: Path) -> None:
    """After the stop one file holds everything, without a log beside it, and nobody claims it."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            assert "state.sqlite-wal" in _files(state_dir)
        assert _files(state_dir) == ["state.sqlite"]
        with open_inactive(state_dir / "state.sqlite", live_directory=None) as read:
            claim = server_state(read)
        assert (claim.epoch, claim.host_id, claim.pid) == (1, None, None)

    run(body)


def test_each_server_takes_the_next_epoch(state_dir: Path) -> None:
    """A server that begins is the next one, also after one that ended without a word."""

    async def body() -> None:
        for epoch in (1, 2):
            async with server(state_dir) as bench:
                assert bench.parts.services.epoch == epoch
        async with server(state_dir, runners_max=1) as bench:
            report = await (await bench.connect()).ask("server.status")
            assert isinstance(report.receipt, dict)
            assert report.receipt["epoch"] == 3

    run(body)


def test_pitfall_01_a_running_server_guards_its_file(state_dir: Path) -> None:
    """While the server lives no Python code of its process opens the database."""

    async def body() -> None:
        file = state_dir / "state.sqlite"
        async with server(state_dir):
            with pytest.raises(LiveFileTouchedError):
                os.open(file, os.O_RDONLY)
        assert file.read_bytes()[:6] == b"SQLite"

    run(body)


def test_a_server_that_nobody_needs_leaves(state_dir: Path) -> None:
    """Ten minutes after the last connection ended the server ends, and not before."""

    async def body() -> None:
        async with server(state_dir, leaves_when_idle=True) as bench:
            peer = await bench.connect()
            await trio.sleep(2 * _IDLE_SECONDS)
            assert not bench.parts.services.stop.is_requested
            await peer.stream.aclose()
            await trio.sleep(_IDLE_SECONDS - 1)
            assert not bench.parts.services.stop.is_requested
            await trio.sleep(2)
            assert bench.parts.services.stop.is_requested

    run(body)


def test_a_queued_run_keeps_the_server(state_dir: Path) -> None:
    """Work that is due now or later is a reason to stay; when it is over the time begins anew."""

    async def body() -> None:
        async with server(state_dir, leaves_when_idle=True) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            await peer.stream.aclose()
            await trio.sleep(3 * _IDLE_SECONDS)
            assert not bench.parts.services.stop.is_requested
            peer = await bench.connect()
            await peer.ask("run.cancel", run_id="run-1")
            await peer.stream.aclose()
            await trio.sleep(_IDLE_SECONDS - 1)
            assert not bench.parts.services.stop.is_requested
            await trio.sleep(2)
            assert bench.parts.services.stop.is_requested

    run(body)


def test_a_paused_run_does_not_keep_the_server(state_dir: Path) -> None:
    """A run that stands still until a person does something waits without a server."""

    async def body() -> None:
        async with server(state_dir, leaves_when_idle=True) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            await peer.ask("run.pause", run_id="run-1")
            await peer.stream.aclose()
            await trio.sleep(_IDLE_SECONDS + 1)
            assert bench.parts.services.stop.is_requested

    run(body)


def test_a_server_in_the_foreground_stays(state_dir: Path) -> None:
    """A server that a person started does not leave by itself."""

    async def body() -> None:
        async with server(state_dir, leaves_when_idle=False) as bench:
            await trio.sleep(10 * _IDLE_SECONDS)
            assert not bench.parts.services.stop.is_requested

    run(body)


def test_the_claim_lives_on_by_heartbeats(state_dir: Path) -> None:
    """However long a server lives, its claim never comes near its end."""

    async def body() -> None:
        async with server(state_dir, runners_max=1) as bench:
            peer = await bench.connect()
            for _ in range(5):
                await trio.sleep(SERVER_CLAIM_MS / 1_000)
                report = await peer.ask("server.status")
                assert isinstance(report.receipt, dict)
                expires_at = report.receipt["expiresAt"]
                assert isinstance(expires_at, int)
                now_ms = START_MS + round(trio.current_time() * 1_000)
                assert expires_at - now_ms >= SERVER_CLAIM_MS // 2

    run(body)


def test_pitfall_13_a_moved_file_ends_an_idle_server(state_dir: Path) -> None:
    """A file that was moved while nothing happened is noticed, and the server ends."""

    async def body() -> None:
        async with server(state_dir, is_compared=False) as bench:
            peer = await bench.connect()
            # The directory moves, as the guard stops our own process from moving the file.
            os.rename(state_dir, state_dir.with_name("elsewhere"))  # noqa: PTH104 - no trio path
            assert await peer.receive() is None

    with pytest.raises(ExceptionGroup) as caught:
        run(body)
    assert caught.value.subgroup(Corrupt) is not None


def test_pitfall_05_an_unknown_outcome_closes_every_connection(state_dir: Path) -> None:
    """When nobody knows what COMMIT left, nobody gets a reply and the server ends as it is."""

    async def body() -> None:
        async with server(state_dir, is_compared=False) as bench:
            asking, watching = await bench.connect(), await bench.connect()

            def fail(*_arguments: object, **_options: object) -> list[Result]:
                raise OutcomeUnknown("COMMIT failed")

            with pytest.MonkeyPatch.context() as planted:
                planted.setattr(Kernel, "commit", fail)
                await asking.send(
                    asking.request("run.start", bench.start(), run_id="run-1", key="k")
                )
                assert await asking.receive() is None
                assert await watching.receive() is None

    with pytest.raises(ExceptionGroup) as caught:
        run(body)
    assert caught.value.subgroup(OutcomeUnknown) is not None
    assert (state_dir / "state.sqlite-wal").exists()


def test_pitfall_19_a_server_that_slept_begins_again(state_dir: Path) -> None:
    """A server whose claim expired while the machine slept stops in order, to take a new epoch."""

    async def body() -> None:
        clock = SleepyClock()
        async with server(state_dir, clock=clock) as bench:
            await trio.sleep(SERVER_CLAIM_MS / 1_000)
            assert not bench.parts.services.stop.is_requested
            clock.slept_ms = 86_400_000
            await trio.sleep(SERVER_CLAIM_MS / 1_000)
            assert bench.life.has_slept
        async with server(state_dir, clock=clock) as bench:
            assert bench.parts.services.epoch == 2

    run(body)


def test_a_stop_ends_a_verification(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that would go on for ever is cut short before the file is closed."""

    def endless(source: Snapshot, *, progress: Callable[[str, int], None], **_more: object) -> None:
        source.pages()
        while True:
            progress("endless", 0)
            time.sleep(0.001)

    monkeypatch.setattr(verify, "verify", endless)

    async def body() -> None:
        async with server(state_dir, clock=SystemClock(), is_compared=False) as bench:
            peer, other = await bench.connect(), await bench.connect()
            await bench.started(other)
            await peer.send(peer.request("state.verify"))
            assert (await other.ask("server.stop")).outcome is Outcome.ACCEPTED
            assert await peer.receive() is None
        assert _files(state_dir) == ["state.sqlite"]

    run(body, mock=False)


def test_a_stop_can_be_asked_for_twice(state_dir: Path) -> None:
    """Two clients that ask for the stop at once are both answered, and it happens once."""

    async def body() -> None:
        async with server(state_dir, is_compared=False) as bench:
            peers = [await bench.connect(), await bench.connect()]
            requests = [peer.request("server.stop", {"graceMs": 0}) for peer in peers]
            for peer, request in zip(peers, requests, strict=True):
                await peer.send(request)
            for peer, request in zip(peers, requests, strict=True):
                assert (await peer.response(request)).outcome in {
                    Outcome.ACCEPTED,
                    Outcome.UNAVAILABLE,
                }
        assert _files(state_dir) == ["state.sqlite"]

    run(body)
