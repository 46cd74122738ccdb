"""`state.backup` through the server: refused in words, and never at the price of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.base.errors import Outcome
from pi_workflows.store.driver import connect
from tests.server.bench import Peer, run, server
from tests.store.bench import open_store


def spoil_page(database: Path) -> None:
    """Overwrite a page that holds nothing, of an index that nobody reads at a start."""
    connection = connect(str(database))
    page = connection.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'channel_messages_channel_id'"
    ).get
    connection.close()
    assert isinstance(page, int)
    with database.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


async def refused(peer: Peer, destination: str) -> tuple[Outcome, str]:
    """Ask for a backup that cannot be; return the outcome and the code."""
    reply = await peer.ask("state.backup", {"destination": destination})
    assert isinstance(reply.receipt, dict)
    return reply.outcome, str(reply.receipt["code"])


def test_a_damaged_database_is_an_answer(state_dir: Path) -> None:
    """Hostile case 3: there is no backup of damage, and the server goes on with what it can."""
    open_store(state_dir).close()
    spoil_page(state_dir / "state.sqlite")

    async def body() -> None:
        async with server(state_dir, is_compared=False) as bench:
            peer = await bench.connect()
            target = state_dir.parent / "copy.sqlite"
            found = await refused(peer, str(target))
            assert found == (Outcome.UNAVAILABLE, "stateCorrupt")
            assert not target.exists()
            assert (await bench.started(peer)).outcome is Outcome.ACCEPTED

    run(body)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("x" * 300, "targetUnusable"),
        (f"{'x' * 300}/copy.sqlite", "targetUnusable"),
        ("missing/copy.sqlite", "directoryMissing"),
        ("state/state.sqlite/copy.sqlite", "directoryMissing"),
        ("state/state.sqlite", "targetLive"),
        ("state/state.sqlite-wal", "targetLive"),
        ("state", "targetExists"),
        ("dangling", "targetExists"),
    ],
)
def test_an_impossible_destination_is_an_answer(state_dir: Path, name: str, code: str) -> None:
    """Hostile cases 19 and 20: whatever path a client names, the server refuses it and lives."""

    async def body() -> None:
        async with server(state_dir) as bench:
            (state_dir.parent / "dangling").symlink_to("nowhere")
            peer = await bench.connect()
            before = sorted(state_dir.parent.iterdir())
            found = await refused(peer, f"{state_dir.parent}/{name}")
            assert found == (Outcome.REJECTED, code)
            assert sorted(state_dir.parent.iterdir()) == before
            assert (await bench.started(peer)).outcome is Outcome.ACCEPTED

    run(body)
