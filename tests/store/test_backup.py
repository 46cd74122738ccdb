"""A backup is one new file that holds one moment of the live database, or it is not there."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Corrupt, PayloadInvalid, Unavailable
from pi_workflows.base.limits import BACKUP_STEP_PAGES
from pi_workflows.base.sql import Statement
from pi_workflows.store.backup import backup, check_source, copying
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
    run,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pi_workflows.store.database import Store
    from tests.store.mounts import Mounts


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


@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
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
    with copying(store, target) as copy:
        left = [copy.step()]
        assert left[0] > 0
        while left[-1]:
            add_project(store, f"during {len(left)}")
            assert not target.exists()
            left.append(copy.step())
        add_project(store, "after")
        copy.complete()
    assert sorted(left, reverse=True) == left
    assert len(left) >= store.path.stat().st_size // 4096 // BACKUP_STEP_PAGES
    assert names(tmp_path) == {"state", "backup.sqlite"}
    with open_inactive(target, live_directory=None) as copy:
        assert number(copy, COUNT_PROJECTS) == len(left) - 1
        assert copy.integrity() == []


def test_a_backup_that_is_given_up_leaves_nothing(store: Store, tmp_path: Path) -> None:
    """Closing a backup half-way removes its file, and the store goes on."""
    grow(store)
    with copying(store, tmp_path / "backup.sqlite") as copy:
        copy.step()
        assert len(names(tmp_path)) == 2
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
    with copying(store, target) as copy:
        while copy.step():
            pass
        target.write_bytes(b"mine")
        with pytest.raises(PayloadInvalid) as caught:
            copy.complete()
    assert caught.value.reason_code == "targetExists"
    assert target.read_bytes() == b"mine"
    assert names(tmp_path) == {"state", "backup.sqlite"}


@pytest.mark.parametrize(
    "name", ["state.sqlite", "state.sqlite-wal", "state.sqlite-journal", "state.sqlite-shm"]
)
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
    [
        ("backup.sqlite", "notAbsolute"),
        ("/nowhere/at/all/backup.sqlite", "directoryMissing"),
        (f"{os.devnull}/backup.sqlite", "directoryMissing"),
        ("/", "targetExists"),
        (f"/{'x' * 300}", "targetUnusable"),
        (f"/{'x' * 300}/backup.sqlite", "targetUnusable"),
        ("/nul\0", "targetUnusable"),
        ("/surrogate\ud800", "targetUnusable"),
        ("/proc/backup.sqlite", "targetUnusable"),
    ],
)
def test_a_target_has_a_place(store: Store, target: str, code: str) -> None:
    """A target that is relative, lies in no directory or has no possible name says so by a code."""
    with pytest.raises(PayloadInvalid) as caught:
        backup(store, Path(target))
    assert caught.value.reason_code == code
    assert caught.value.field == target


@pytest.mark.slow
def test_a_target_that_may_not_be_written_is_refused(
    store: Store, tmp_path: Path, mounts: Mounts
) -> None:
    """Where the disk is read-only there can be no copy, and asking again would not help."""
    place = tmp_path / "place"
    place.mkdir()
    mounts.bind(place, place, read_only=True)
    with pytest.raises(PayloadInvalid, match="Read-only") as caught:
        backup(store, place / "backup.sqlite")
    assert caught.value.reason_code == "targetUnusable"


def test_a_swapped_name_gets_nothing(store: Store, tmp_path: Path) -> None:
    """What is published is the file that was filled, whatever has its first name by then."""
    grow(store)
    with copying(store, tmp_path / "backup.sqlite") as copy:
        while copy.step():
            (name,) = names(tmp_path) - {"state", "moved"}
            if not (tmp_path / "moved").exists():
                (tmp_path / name).rename(tmp_path / "moved")
                (tmp_path / name).write_bytes(b"mine")
        copy.complete()
    assert (tmp_path / "backup.sqlite").samefile(tmp_path / "moved")
    with open_inactive(tmp_path / "backup.sqlite", live_directory=None) as found:
        assert found.integrity() == []


def test_a_swapped_directory_gets_nothing(store: Store, tmp_path: Path) -> None:
    """Hostile case 21: the copy goes to the directory that was named, wherever it is by then."""
    grow(store)
    (tmp_path / "outside").mkdir()
    parent = tmp_path / "parent"
    parent.mkdir()
    with copying(store, parent / "backup.sqlite") as copy:
        while copy.step():
            if not parent.is_symlink():
                parent.rename(tmp_path / "moved")
                parent.symlink_to(tmp_path / "outside")
        copy.complete()
    assert names(tmp_path / "outside") == set()
    assert names(tmp_path / "moved") == {"backup.sqlite"}


def test_a_directory_that_became_the_live_one(store: Store, tmp_path: Path) -> None:
    """What is judged is the directory that is written to, not the one that the path led to."""
    parent = tmp_path / "parent"
    parent.mkdir()
    destination = parent / f"{store.path.name}-journal"
    check_source(store, destination)
    parent.rmdir()
    parent.symlink_to(store.path.parent)
    with pytest.raises(PayloadInvalid) as caught, copying(store, destination):
        pass
    assert caught.value.reason_code == "targetLive"
    assert destination.name not in names(store.path.parent)


def moments() -> Iterator[int]:
    """Yield after how many calls one fails: the first few, then ever fewer."""
    at = 1
    while True:
        yield at
        at += 1 + at // 4


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(
    "name",
    ["open", "fchmod", "fstat", "pread", "pwrite", "fsync", "link", "unlink", "scandir"],
)
def test_a_call_that_fails_leaves_no_copy(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: int
) -> None:
    """Hostile case 22: whichever call to the system fails once, nothing is left of the copy."""
    add_project(store, "p")
    real = getattr(os, name)
    left = 0

    def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(fault, os.strerror(fault))
        return real(*arguments, **options)

    codes: list[str] = []
    for moment in moments():
        left = moment
        try:
            with monkeypatch.context() as patch:
                patch.setattr(os, name, failing)
                backup(store, tmp_path / "backup.sqlite")
        except (Unavailable, Corrupt) as error:
            codes.append(error.reason_code)
            assert names(tmp_path) == {"state"}
            continue
        assert names(tmp_path) == {"state", "backup.sqlite"}
        if left > 0:
            break
        # The call was one on which nothing hung.
        (tmp_path / "backup.sqlite").unlink()
    assert set(codes) == {"diskFull" if fault == errno.ENOSPC else "storageFault"}
    assert projects(store) == 1


@pytest.mark.slow
@pytest.mark.parametrize("size_bytes", [64 << 10, 512 << 10, 4 << 20])
def test_a_full_disk_leaves_no_copy(
    store: Store, tmp_path: Path, mounts: Mounts, size_bytes: int
) -> None:
    """Hostile case 22: a real disk that is full keeps nothing of the copy, and the store lives."""
    grow(store)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounts.memory(disk, size_bytes)
    with pytest.raises(Unavailable) as caught:
        backup(store, disk / "backup.sqlite")
    assert caught.value.reason_code == "diskFull"
    assert names(disk) == set()
    assert os.statvfs(disk).f_bfree * 4096 == size_bytes
    add_project(store, "p")
    assert projects(store) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from pi_workflows.store.backup import copying
from tests.store.bench import open_store
with copying(open_store(Path(sys.argv[1])), Path(sys.argv[2])) as copy:
    copy.step()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_what_a_killed_backup_left_is_removed_by_the_next(store: Store, tmp_path: Path) -> None:
    """A killed process leaves its unfinished file; the next backup there removes it, and no other.

    A copy that is under way keeps its file, and whatever else has such a name stays.
    """
    grow(store)
    place = tmp_path / "place"
    place.mkdir()
    for _ in range(2):
        run(KILLED, str(tmp_path / "other"), str(place / "killed.sqlite"))
        (left,) = names(place)
        assert left.startswith(".state-backup-")
    kept = {f".state-backup-{'a' * count}" for count in (15, 17)}
    for name in kept:
        (place / name).write_bytes(b"mine")
    (place / f".state-backup-{'b' * 16}").mkdir()
    (place / f".state-backup-{'c' * 16}").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(place / f".state-backup-{'d' * 16}")
    kept |= {f".state-backup-{letter * 16}" for letter in "bcd"}
    with copying(store, place / "first.sqlite") as first:
        first.step()
        backup(store, place / "second.sqlite")
        while first.step():
            pass
        first.complete()
    assert names(place) == kept | {"first.sqlite", "second.sqlite"}


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
    for way in (backup, check_source):
        with pytest.raises(Corrupt):
            way(store, tmp_path / "backup.sqlite")
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
