"""A backup is one new file that holds one moment of the live database, or it is not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt, PayloadInvalid, Unavailable
from pi_workflows.base.limits import BACKUP_STEP_PAGES
from pi_workflows.base.sql import Statement
from pi_workflows.store.backup import backup, backup_in_steps
from pi_workflows.store.header import read_header
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.log import events
from tests.store.bench import (
    COUNT_PROJECTS,
    NOW_MS,
    add_events,
    add_project,
    number,
    open_store,
    projects,
    raw,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_workflows.store.database import Store


def names(directory: Path) -> set[str]:
    """Return what lies in a directory."""
    return {path.name for path in directory.iterdir()}


def grow(store: Store, blob_count: int = 20) -> None:
    """Make the database larger than one step of a backup."""
    with store.transaction() as transaction:
        for count in range(blob_count):
            transaction.put_blob(Blob.of(os.urandom(400_000), "text/plain"), NOW_MS + count)


def test_a_backup_is_the_database(store: Store, tmp_path: Path) -> None:
    """The copy is private, needs nothing beside it, and holds what was committed."""
    add_events(store, "run-1", 3)
    target = tmp_path / "backup.sqlite"
    assert backup(store, target) == target.stat().st_size
    assert target.stat().st_mode & 0o7777 == 0o600
    header = read_header(target)
    assert header is not None
    assert not header.has_wal
    with (
        store.snapshot() as live,
        open_inactive(target, live_directory=store.path.parent) as copy,
    ):
        assert list(events(copy)) == list(events(live))
        assert copy.integrity() == []
    assert names(tmp_path) == {"state", "backup.sqlite"}


@pytest.mark.parametrize("umask", [0, 0o777])
def test_no_umask_changes_the_mode(store: Store, tmp_path: Path, umask: int) -> None:
    """The copy is ours to read and write and nobody else's, whatever the umask says."""
    mask = os.umask(umask)
    try:
        backup(store, tmp_path / "backup.sqlite")
    finally:
        os.umask(mask)
    assert (tmp_path / "backup.sqlite").stat().st_mode & 0o7777 == 0o600


def test_a_backup_can_become_the_live_file(store: Store, tmp_path: Path) -> None:
    """Restoring is moving the copy to an empty state directory."""
    add_project(store, "p")
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    backup(store, other / "state.sqlite")
    restored = open_store(other)
    assert projects(restored) == 1
    restored.close()


def test_commits_go_on_during_a_backup(store: Store, tmp_path: Path) -> None:
    """Hostile case 23: what is committed between the steps is in the copy, which is sound."""
    grow(store)
    target = tmp_path / "backup.sqlite"
    steps = backup_in_steps(store, target)
    left = [next(steps)]
    assert left[0] > 0
    add_project(store, "during")
    assert not target.exists()
    left += list(steps)
    assert sorted(left, reverse=True) == left
    assert len(left) >= store.path.stat().st_size // 4096 // BACKUP_STEP_PAGES
    with open_inactive(target, live_directory=None) as copy:
        assert number(copy, COUNT_PROJECTS) == 1
        assert copy.integrity() == []


def test_a_backup_that_is_given_up_leaves_nothing(store: Store, tmp_path: Path) -> None:
    """Closing a backup half-way removes its file, and the store goes on."""
    grow(store)
    steps = backup_in_steps(store, tmp_path / "backup.sqlite")
    next(steps)
    assert len(names(tmp_path)) == 2
    steps.close()
    assert names(tmp_path) == {"state"}
    add_project(store, "p")


def existing(target: Path) -> None:
    """Put a file there."""
    target.write_bytes(b"mine")


def dangling(target: Path) -> None:
    """Put a link there that leads nowhere."""
    target.symlink_to("nowhere")


@pytest.mark.parametrize("occupy", [existing, dangling, Path.mkdir])
def test_a_target_that_exists_is_left_alone(
    store: Store, tmp_path: Path, occupy: Callable[[Path], None]
) -> None:
    """Hostile case 19: a file, a directory or a dangling link is never replaced."""
    target = tmp_path / "backup.sqlite"
    occupy(target)
    before = target.lstat()
    with pytest.raises(PayloadInvalid) as caught:
        backup(store, target)
    assert caught.value.reason_code == "targetExists"
    after = target.lstat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino, before.st_size, before.st_mtime_ns,
    )  # fmt: skip
    assert names(tmp_path) == {"state", "backup.sqlite"}


def test_a_target_that_appears_meanwhile_is_left_alone(store: Store, tmp_path: Path) -> None:
    """Whoever takes the name while the copy is made keeps it."""
    grow(store)
    target = tmp_path / "backup.sqlite"
    steps = backup_in_steps(store, target)
    next(steps)
    target.write_bytes(b"mine")
    with pytest.raises(PayloadInvalid) as caught:
        list(steps)
    assert caught.value.reason_code == "targetExists"
    assert target.read_bytes() == b"mine"
    assert names(tmp_path) == {"state", "backup.sqlite"}


@pytest.mark.parametrize("name", ["state.sqlite", "state.sqlite-wal", "state.sqlite-journal"])
def test_the_live_database_is_no_target(store: Store, tmp_path: Path, name: str) -> None:
    """Hostile case 20: not the live file nor one beside it, by whatever path to its directory."""
    link = tmp_path / "link"
    link.symlink_to(store.path.parent)
    for directory in (store.path.parent, link, store.path.parent / ".." / "state"):
        with pytest.raises(PayloadInvalid) as caught:
            backup(store, directory / name)
        assert caught.value.reason_code == "targetLive"
    assert projects(store) == 0


def test_a_hard_link_of_the_live_database_is_no_target(store: Store, tmp_path: Path) -> None:
    """Hostile case 20: another name of the live file exists, so it is refused."""
    target = tmp_path / "second"
    os.link(store.path, target)
    with pytest.raises(PayloadInvalid) as caught:
        backup(store, target)
    assert caught.value.reason_code == "targetExists"
    target.unlink()


@pytest.mark.parametrize(
    ("target", "code"),
    [("backup.sqlite", "notAbsolute"), ("/nowhere/at/all/backup.sqlite", "directoryMissing")],
)
def test_a_target_has_a_place(store: Store, target: str, code: str) -> None:
    """A relative target, and one in no directory, is refused by its own code."""
    with pytest.raises(PayloadInvalid) as caught:
        backup(store, Path(target))
    assert caught.value.reason_code == code
    assert caught.value.field == target


def test_a_swapped_directory_gets_nothing(store: Store, tmp_path: Path) -> None:
    """Hostile case 21: the copy goes to the directory that was named, wherever it is by then."""
    grow(store)
    (tmp_path / "outside").mkdir()
    parent = tmp_path / "parent"
    parent.mkdir()
    steps = backup_in_steps(store, parent / "backup.sqlite")
    next(steps)
    parent.rename(tmp_path / "moved")
    parent.symlink_to(tmp_path / "outside")
    list(steps)
    assert names(tmp_path / "outside") == set()
    assert names(tmp_path / "moved") == {"backup.sqlite"}


def test_a_full_disk_leaves_no_copy(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hostile case 22: when the disk is full nothing is left of the copy, and the store lives."""
    add_project(store, "p")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable) as caught:
        backup(store, tmp_path / "backup.sqlite")
    assert caught.value.reason_code == "diskFull"
    assert names(tmp_path) == {"state"}
    assert projects(store) == 1


def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    """Hostile case 3: a corrupt page is found before the copy is made, and nothing is repaired."""
    store = open_store(tmp_path / "state")
    grow(store)
    store.close()
    path = store.path
    with path.open("r+b") as file:
        # A page in the middle of an index on runs that no row is in.
        connection = raw(path)
        page = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'runs_status'"
        ).get
        connection.close()
        assert isinstance(page, int)
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    damaged = path.read_bytes()
    store = open_store(tmp_path / "state")
    with pytest.raises(Corrupt):
        next(backup_in_steps(store, tmp_path / "backup.sqlite"))
    assert names(tmp_path) == {"state"}
    store.close()
    assert path.read_bytes()[4096:] == damaged[4096:]


def test_an_orphan_row_is_not_backed_up(tmp_path: Path) -> None:
    """A row whose foreign key names nothing is damage too."""
    store = open_store(tmp_path / "state")
    add_events(store, "run-1", 1)
    store.close()
    connection = raw(store.path)
    connection.pragma("foreign_keys", "OFF")
    connection.execute("DELETE FROM resources")
    connection.close()
    store = open_store(tmp_path / "state")
    with pytest.raises(Corrupt, match="names a missing row of resources"):
        backup(store, tmp_path / "backup.sqlite")
    store.close()


def test_a_backup_has_the_size_of_the_database(store: Store, tmp_path: Path) -> None:
    """The length that is reported is the file's, and the pages are the live database's."""
    grow(store, 3)
    pages = Statement("pages", "SELECT page_count FROM pragma_page_count")
    with store.snapshot() as live:
        expected = number(live, pages) * 4096
    assert backup(store, tmp_path / "b") == expected
