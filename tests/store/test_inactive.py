"""A database that no server has open is read without leaving a trace; the live one never is."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from pi_workflows.base.errors import (
    AuthorityDenied,
    Corrupt,
    Incompatible,
    NotFound,
    WorkflowsError,
)
from pi_workflows.base.sql import Statement
from pi_workflows.store.backup import backup
from pi_workflows.store.inactive import create_scratch, open_inactive
from tests.store.bench import (
    COUNT_PROJECTS,
    INSERT_PROJECT,
    add_events,
    add_project,
    is_locked,
    number,
    open_store,
    raw,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pi_workflows.store.database import Store
    from pi_workflows.store.inactive import Scratch


@pytest.fixture
def copy(store: Store, tmp_path: Path) -> Path:
    """A backup, alone in its directory."""
    add_events(store, "run-1", 3)
    add_project(store, "p")
    directory = tmp_path / "copies"
    directory.mkdir()
    backup(store, directory / "copy.sqlite")
    return directory / "copy.sqlite"


def listing(directory: Path) -> list[tuple[str, int, int]]:
    """Return name, length and time of change of everything in a directory."""
    return sorted(
        (path.name, path.lstat().st_size, path.lstat().st_mtime_ns) for path in directory.iterdir()
    )


def refusal(file: Path, live_directory: Path | None = None) -> WorkflowsError:
    """Open a file, which must fail and leave no trace; return the refusal."""
    before = listing(file.parent)
    with (
        pytest.raises(WorkflowsError) as caught,
        open_inactive(file, live_directory=live_directory),
    ):
        pass
    assert listing(file.parent) == before
    return caught.value


def test_a_backup_is_read_without_a_trace(store: Store, copy: Path) -> None:
    """Nothing beside the file is made or changed, nor the file itself."""
    before = listing(copy.parent)
    with open_inactive(copy, live_directory=store.path.parent) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1
        assert snapshot.integrity() == []
        assert snapshot.foreign_keys() == []
        assert listing(copy.parent) == before
    assert listing(copy.parent) == before


@pytest.mark.slow
def test_a_read_only_directory_is_enough(copy: Path) -> None:
    """Hostile case 25: a backup in a directory that nobody may write is verified there."""
    copy.parent.chmod(0o500)
    copy.chmod(0o400)
    mount = ["mount", "--bind", "-o", "ro", str(copy.parent), str(copy.parent)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        if os.geteuid() == 0 and not mounted:
            pytest.skip("root writes everywhere, and there is no right to mount here")
        with open_inactive(copy, live_directory=None) as snapshot:
            assert snapshot.integrity() == []
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(copy.parent)], check=True)
        copy.parent.chmod(0o700)


def test_an_orderly_stopped_database_is_inactive(tmp_path: Path) -> None:
    """What an orderly stop left can be read by its path when no state directory is live."""
    opened = open_store(tmp_path / "state")
    add_project(opened, "p")
    opened.close()
    with open_inactive(opened.path, live_directory=None) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1


def by_symlink(live: Path, place: Path) -> Path:
    """Lead to it by a symbolic link."""
    place.symlink_to(live)
    return place


def by_directory_link(live: Path, place: Path) -> Path:
    """Lead to it by a link to its directory."""
    place.symlink_to(live.parent)
    return place / live.name


def by_hard_link(live: Path, place: Path) -> Path:
    """Give it a second name."""
    os.link(live, place)
    return place


def by_relative_path(live: Path, place: Path) -> Path:
    """Lead to it over a detour."""
    place.mkdir()
    return place / ".." / live.parent.name / live.name


def by_itself(live: Path, _place: Path) -> Path:
    """Name it."""
    return live


@pytest.mark.parametrize(
    "lead", [by_symlink, by_directory_link, by_hard_link, by_relative_path, by_itself]
)
def test_no_path_leads_to_the_live_database(
    store: Store, tmp_path: Path, lead: Callable[[Path, Path], Path]
) -> None:
    """Hostile case 24: the live file is recognised by device and inode, whatever its name."""
    file = lead(store.path, tmp_path / "place")
    error = refusal(file, store.path.parent)
    assert isinstance(error, AuthorityDenied)
    assert error.reason_code == "liveFile"


OPENED = """
import os, sys
from pathlib import Path
from pi_workflows.base.errors import WorkflowsError
from pi_workflows.store.inactive import open_inactive
descriptor = os.open(sys.argv[1], os.O_RDONLY)
try:
    with open_inactive(Path(f"/proc/self/fd/{descriptor}"), live_directory=Path(sys.argv[2])):
        pass
except WorkflowsError as error:
    print(error.reason_code)
"""


@pytest.mark.slow
def test_no_descriptor_leads_to_the_live_database(store: Store) -> None:
    """Hostile case 24: not even a path to an open descriptor of it."""
    done = run(OPENED, str(store.path), str(store.path.parent))
    assert done.stdout == "liveFile\n", done.stderr


@pytest.mark.slow
def test_no_mount_leads_to_the_live_database(store: Store, tmp_path: Path) -> None:
    """Hostile case 24: a bind mount of the live file is the live file."""
    place = tmp_path / "place"
    place.touch()
    mount = ["mount", "--bind", str(store.path), str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount here")
    try:
        assert refusal(place, store.path.parent).reason_code == "liveFile"
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_the_live_database_is_compared_before_it_is_opened(store: Store) -> None:
    """Refusing the live file opens no descriptor of it: closing one would drop its locks."""
    refusal(store.path, store.path.parent)
    assert is_locked(store)


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_file_with_another_beside_it_is_not_complete(copy: Path, suffix: str) -> None:
    """A log beside the file may hold commits that reading the file alone would not show."""
    (copy.parent / f"copy.sqlite{suffix}").touch()
    error = refusal(copy)
    assert isinstance(error, AuthorityDenied)
    assert error.reason_code == "notSelfContained"


def test_a_link_is_judged_where_it_leads(copy: Path, tmp_path: Path) -> None:
    """A link to a backup is read; a log beside the link's target counts."""
    link = tmp_path / "link"
    link.symlink_to(copy)
    with open_inactive(link, live_directory=None) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1
    (copy.parent / "copy.sqlite-wal").touch()
    assert refusal(link).reason_code == "notSelfContained"


@pytest.mark.parametrize("content", [b"", b"text", b"text" * 100])
def test_a_stranger_is_refused(tmp_path: Path, content: bytes) -> None:
    """Hostile cases 1 and 2, offline: what is no database is refused with the fixed text."""
    (tmp_path / "file").write_bytes(content)
    assert isinstance(refusal(tmp_path / "file"), Incompatible)


@pytest.mark.parametrize(
    "statement",
    ["PRAGMA user_version = 2", "CREATE TABLE sqlitexevil (a)", "DROP INDEX runs_status"],
)
def test_another_shape_is_refused(copy: Path, statement: str) -> None:
    """Identity and shape are held to the same rule as the live file's."""
    connection = raw(copy)
    connection.execute(statement)
    connection.close()
    assert isinstance(refusal(copy), Incompatible)


def test_a_truncated_copy_is_corrupt(copy: Path) -> None:
    """Hostile case 4, offline."""
    os.truncate(copy, copy.stat().st_size // 8192 * 4096)
    assert isinstance(refusal(copy), Corrupt)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    """A missing file, a dangling link and a loop of links are not found; a directory is refused."""
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("missing", "dangling", "loop"):
        assert isinstance(refusal(tmp_path / name), NotFound)
    (tmp_path / "directory").mkdir()
    assert refusal(tmp_path / "directory").reason_code == "notRegularFile"


def test_a_path_may_hold_what_urls_may_not(copy: Path) -> None:
    """A path with a question mark, a percent sign and a space is that path."""
    odd = copy.with_name("a ?immutable=0#%41é.sqlite")
    copy.rename(odd)
    with open_inactive(odd, live_directory=None) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_scratch_database_is_empty_strict_and_gone(tmp_path: Path, *, on_disk: bool) -> None:
    """A scratch database has the schema, holds foreign keys, and is removed at the end."""
    path = tmp_path / "scratch" if on_disk else None
    with create_scratch(path) as scratch:
        with scratch.snapshot() as snapshot:
            assert number(snapshot, COUNT_PROJECTS) == 0
        with scratch.transaction() as transaction:
            transaction.projection.write(INSERT_PROJECT, project_id="p")
        if path is not None:
            assert path.stat().st_mode & 0o7777 == 0o600
        with pytest.raises(AssertionError, match="FOREIGN KEY"):
            orphan(scratch)
        with scratch.snapshot() as snapshot:
            assert number(snapshot, COUNT_PROJECTS) == 1
    assert list(tmp_path.iterdir()) == []


def orphan(scratch: Scratch) -> None:
    """Insert a row whose foreign key names nothing."""
    statement = Statement("orphan", "INSERT INTO leases (resource_id) VALUES ('missing')")
    with scratch.transaction() as transaction:
        transaction.projection.write(INSERT_PROJECT, project_id="q")
        transaction.projection.write(statement)


def test_a_scratch_database_replaces_nothing(tmp_path: Path) -> None:
    """Where a file lies no scratch database is made."""
    path = tmp_path / "scratch"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError), create_scratch(path):
        pass
    assert path.read_bytes() == b"mine"
