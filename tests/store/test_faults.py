"""Disks that fill up or fail: nothing half done, nothing lost, and no guess about a COMMIT."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from pi_workflows.base.errors import OutcomeUnknown, Unavailable
from pi_workflows.base.sql import Statement
from tests.store.bench import (
    COUNT_EVENTS,
    INSERT_PROJECT,
    add_project,
    add_resource,
    append,
    number,
    open_store,
    projects,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_workflows.store.database import Store


def fill(store: Store) -> Statement:
    """Let the database grow by few pages only; return a write that needs more."""
    connection = store.writer.connection
    guard, connection.authorizer = connection.authorizer, None
    count = connection.pragma("page_count")
    assert isinstance(count, int)
    connection.pragma("max_page_count", count + 4)
    connection.authorizer = guard
    return Statement("fill", "INSERT INTO projects VALUES ('big', hex(zeroblob(100000)), 0)")


def make_room(store: Store) -> None:
    """Let the database grow again."""
    connection = store.writer.connection
    guard, connection.authorizer = connection.authorizer, None
    connection.pragma("max_page_count", 1 << 30)
    connection.authorizer = guard


def overfill(store: Store, big: Statement) -> None:
    """Append an event, then write more than there is space for."""
    with store.transaction() as transaction:
        add_resource(transaction, "run-1")
        append(transaction, "run-1", 1)
        transaction.projection.write(big)


def test_a_full_disk_rolls_back_whole_and_works_again(store: Store) -> None:
    """Hostile case 16: SQLITE_FULL leaves nothing of the transaction; with space a retry works."""
    big = fill(store)
    with pytest.raises(Unavailable) as caught:
        overfill(store, big)
    assert caught.value.reason_code == "diskFull"
    assert projects(store) == 0
    with store.snapshot() as snapshot:
        assert number(snapshot, COUNT_EVENTS) == 0
    make_room(store)
    overfill(store, big)
    assert projects(store) == 1


def go_on_after_loss(store: Store, big: Statement) -> None:
    """Swallow the failure that ended the transaction, try to go on, and end the body in peace."""
    with store.transaction() as transaction:
        transaction.projection.write(INSERT_PROJECT, project_id="before")
        with suppress(Unavailable), transaction.savepoint():
            transaction.projection.write(big)
        assert transaction.lost
        with pytest.raises(AssertionError, match="outside a transaction"):
            transaction.projection.write(INSERT_PROJECT, project_id="after")
        with pytest.raises(AssertionError, match="outside a transaction"):
            transaction.savepoint().__enter__()


def test_a_lost_transaction_commits_nothing(store: Store) -> None:
    """When SQLite ended the transaction, catching the error does not let the rest commit."""
    big = fill(store)
    with pytest.raises(Unavailable) as caught:
        go_on_after_loss(store, big)
    assert caught.value.reason_code == "diskFull"
    assert projects(store) == 0
    make_room(store)
    add_project(store, "again")


class FaultyFile(apsw.VFSFile):
    """A file whose writes and syncs fail while its VFS says so."""

    def __init__(self, name: str | apsw.URIFilename, flags: list[int], vfs: FaultyVFS) -> None:
        super().__init__("unix-excl", name, flags)
        self._vfs = vfs

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - apsw's name
        """Write, or find the disk full."""
        if self._vfs.fault == "full":
            raise apsw.FullError
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType] - as driver.py

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's name
        """Sync, then report that it failed."""
        super().xSync(flags)
        if self._vfs.fault == "sync":
            raise apsw.IOError


class FaultyVFS(apsw.VFS):
    """SQLite's file layer with faults on demand."""

    fault = ""

    def __init__(self) -> None:
        super().__init__("faulty", "unix-excl")
        self.opened: list[str] = []

    def xOpen(  # noqa: N802 - apsw's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file that can fail."""
        assert name is not None
        self.opened.append(name if isinstance(name, str) else name.filename())
        return FaultyFile(name, flags, self)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyVFS]:
    """The file layer of every store that the test opens."""
    vfs = FaultyVFS()
    monkeypatch.setattr("pi_workflows.store.connection._LIVE_VFS", "faulty")
    yield vfs
    vfs.unregister()


def test_a_failed_sync_at_commit_is_an_unknown_outcome(tmp_path: Path, faults: FaultyVFS) -> None:
    """Hostile case 17: after a failed sync the commit may be there, and here it is."""
    store = open_store(tmp_path)
    add_project(store, "o")
    faults.fault = "sync"
    with pytest.raises(OutcomeUnknown):
        add_project(store, "p")
    store.crash()
    faults.fault = ""
    again = open_store(tmp_path)
    assert projects(again) == 2
    again.close()


def test_a_disk_that_is_full_at_commit_rolled_back(tmp_path: Path, faults: FaultyVFS) -> None:
    """SQLITE_FULL at COMMIT leaves nothing of the transaction, and the store goes on."""
    store = open_store(tmp_path)
    faults.fault = "full"
    with pytest.raises(Unavailable) as caught:
        add_project(store, "p")
    assert caught.value.reason_code == "diskFull"
    assert not store.writer.connection.in_transaction
    assert projects(store) == 0
    faults.fault = ""
    add_project(store, "p")
    store.close()
    again = open_store(tmp_path)
    assert projects(again) == 1
    again.close()


def test_no_journal_is_ever_made(tmp_path: Path, faults: FaultyVFS) -> None:
    """Neither starting nor stopping leaves a moment at which a crash would leave a journal."""
    for _ in range(2):
        store = open_store(tmp_path)
        add_project(store, f"p{len(faults.opened)}")
        store.close()
    assert {name.rpartition("/")[2] for name in faults.opened} == {
        "state.sqlite", "state.sqlite-wal",
    }  # fmt: skip


def test_a_full_disk_stops_checkpoint_and_close_without_loss(
    tmp_path: Path, faults: FaultyVFS
) -> None:
    """A checkpoint on a full disk fails, a close too; what was committed is found again."""
    store = open_store(tmp_path)
    add_project(store, "p")
    faults.fault = "full"
    with pytest.raises(Unavailable):
        store.checkpoint()
    with pytest.raises(Unavailable):
        store.close()
    faults.fault = ""
    again = open_store(tmp_path)
    assert projects(again) == 1
    again.close()


@pytest.mark.slow
def test_a_real_full_disk_loses_nothing(tmp_path: Path) -> None:
    """On a small file system the store works until it is full, and again when there is space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount a tmpfs here")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * 700_000)
        store = open_store(disk / "state")
        done = 0
        with suppress(Unavailable):
            while done < 100_000:
                add_project(store, f"p{done}")
                done += 1
        assert projects(store) == done
        assert store.wal_bytes() > 0
        ballast.unlink()
        add_project(store, "again")
        store.checkpoint(truncate=True)
        store.close()
        again = open_store(disk / "state")
        assert projects(again) == done + 1
        with again.snapshot() as snapshot:
            assert snapshot.integrity() == []
        again.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
