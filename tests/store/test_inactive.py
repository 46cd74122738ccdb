"""A database that no server has open is read without leaving a trace; the live one never is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
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
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
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
    from collections.abc import Callable, Iterator

    from pi_workflows.store.database import Store
    from pi_workflows.store.scratch import Scratch
    from tests.store.mounts import Mounts

NULL = Path(os.devnull)


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
    place = file.parent if file.parent.is_dir() else file.parent.parent
    before = listing(place)
    with (
        pytest.raises(WorkflowsError) as caught,
        open_inactive(file, live_directory=live_directory),
    ):
        pass
    assert listing(place) == before
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


def test_an_orderly_stopped_database_is_inactive(tmp_path: Path) -> None:
    """What an orderly stop left can be read by its path when no state directory is live."""
    opened = open_store(tmp_path / "state")
    add_project(opened, "p")
    opened.close()
    with open_inactive(opened.path, live_directory=None) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1


@pytest.fixture
def _same_place() -> Iterator[None]:
    """Return to the working directory."""
    place = Path.cwd()
    yield
    os.chdir(place)


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


def by_links(live: Path, place: Path) -> Path:
    """Lead to it by a link to a link."""
    place.mkdir()
    (place / "one").symlink_to(live)
    (place / "two").symlink_to("one")
    return place / "two"


def by_descriptor(live: Path, _place: Path) -> Path:
    """Lead to its directory by an open descriptor, which the process keeps."""
    return Path(f"/proc/self/fd/{os.open(live.parent, os.O_PATH)}") / live.name


def by_working_directory(live: Path, _place: Path) -> Path:
    """Name it from where the process is."""
    os.chdir(live.parent)
    return Path(live.name)


def by_itself(live: Path, _place: Path) -> Path:
    """Name it."""
    return live


@pytest.mark.parametrize(
    "lead",
    [
        by_symlink,
        by_directory_link,
        by_hard_link,
        by_relative_path,
        by_links,
        by_descriptor,
        by_working_directory,
        by_itself,
    ],
)
@pytest.mark.usefixtures("_same_place")
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
@pytest.mark.parametrize("what", ["file", "directory"])
def test_no_mount_leads_to_the_live_database(
    store: Store, tmp_path: Path, mounts: Mounts, what: str
) -> None:
    """Hostile case 24: a bind mount of the live file, or of its directory, is the live file."""
    place = tmp_path / "place"
    if what == "file":
        place.touch()
        mounts.bind(store.path, place)
    else:
        place.mkdir()
        mounts.bind(store.path.parent, place)
        place /= store.path.name
    assert refusal(place, store.path.parent).reason_code == "liveFile"


SERVING = """
import sys
from pathlib import Path
from tests.store.bench import open_store
store = open_store(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
store.crash()
"""


@pytest.mark.slow
@pytest.mark.parametrize("with_log", [False, True])
def test_no_name_hides_that_a_server_has_it_open(tmp_path: Path, *, with_log: bool) -> None:
    """A live database of another directory is found by its lock, under a name without its log."""
    state = tmp_path / "elsewhere"
    if with_log:
        prepared = open_store(state)
        add_project(prepared, "p")
        prepared.crash()
    with subprocess.Popen(
        [sys.executable, "-c", SERVING, str(state)], stdin=PIPE, stdout=PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "open\n"
        (tmp_path / "names").mkdir()
        os.link(state / "state.sqlite", tmp_path / "names" / "second.sqlite")
        error = refusal(tmp_path / "names" / "second.sqlite", tmp_path)
        server.communicate()
    assert isinstance(error, AuthorityDenied)
    assert error.reason_code == "fileInUse"


def test_what_was_judged_is_what_is_read(
    store: Store, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever swaps the path at any moment between judging and reading changes nothing."""
    add_project(store, "only live")
    opened = os.open
    other = copy.with_name("other")

    def swapping(path: str | Path, flags: int) -> int:
        descriptor = opened(path, flags)
        other.unlink(missing_ok=True)
        os.link(store.path, other)
        other.rename(copy)
        return descriptor

    monkeypatch.setattr(os, "open", swapping)
    with open_inactive(copy, live_directory=store.path.parent) as snapshot:
        assert os.path.samestat(copy.stat(), store.path.stat())
        assert number(snapshot, COUNT_PROJECTS) == 1
    monkeypatch.undo()
    assert refusal(copy, store.path.parent).reason_code == "liveFile"
    copy.unlink()


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


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes, and a device, are refused at once."""
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").reason_code == "notRegularFile"
    with pytest.raises(AuthorityDenied) as caught, open_inactive(NULL, live_directory=None):
        pass
    assert caught.value.reason_code == "notRegularFile"


@pytest.mark.parametrize(
    "name", ["nul\0", "surrogate\ud800", "x" * 300, "file/below", "bytes\udcff"]
)
def test_a_name_that_no_file_can_have_is_not_found(copy: Path, name: str) -> None:
    """Whatever a path holds, it is an answer: a NUL, half a character, too many, a file's child."""
    copy.with_name("file").touch()
    error = refusal(copy.parent / name)
    assert isinstance(error, NotFound)
    assert error.reason_code == "fileMissing"


def test_a_name_of_odd_bytes_is_read(copy: Path) -> None:
    """A file whose name is no UTF-8 is that file."""
    odd = copy.with_name("odd\udcff.sqlite")
    copy.rename(odd)
    with open_inactive(odd, live_directory=None) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1


UNREADABLE = """
import os, sys
from pathlib import Path
from pi_workflows.base.errors import WorkflowsError
from pi_workflows.store.inactive import open_inactive
if os.geteuid() == 0:
    os.setuid(12345)
for name in sys.argv[1:]:
    try:
        with open_inactive(Path(name), live_directory=None) as snapshot:
            print(snapshot.integrity())
    except WorkflowsError as error:
        print(type(error).__name__, error.reason_code, error.field == name)
"""


@pytest.mark.slow
def test_a_file_that_may_not_be_read_is_refused(copy: Path, open_tmp_path: Path) -> None:
    """Without the right to read the file, or to enter its directory, the answer says so."""
    closed = open_tmp_path / "closed"
    closed.mkdir()
    shutil.copy(copy, closed / "inside")
    shutil.copy(copy, open_tmp_path / "file")
    (open_tmp_path / "file").chmod(0)
    closed.chmod(0)
    done = run(UNREADABLE, str(open_tmp_path / "file"), str(closed / "inside"))
    closed.chmod(0o700)
    assert done.stdout == "AuthorityDenied fileUnreadable True\n" * 2, done.stderr


@pytest.mark.slow
def test_a_read_only_directory_is_enough(copy: Path, open_tmp_path: Path) -> None:
    """Hostile case 25: a backup that nobody may write, where nobody may write, is verified."""
    place = open_tmp_path / "place"
    place.mkdir()
    shutil.copy(copy, place / "copy.sqlite")
    (place / "copy.sqlite").chmod(0o444)
    place.chmod(0o555)
    before = listing(place)
    done = run(UNREADABLE, str(place / "copy.sqlite"))
    assert done.stdout == "[]\n", done.stderr
    assert listing(place) == before
    place.chmod(0o700)


@pytest.mark.slow
def test_a_read_only_disk_is_enough(copy: Path, mounts: Mounts) -> None:
    """Hostile case 25: a backup on a disk that is mounted read-only is verified."""
    mounts.bind(copy.parent, copy.parent, read_only=True)
    with pytest.raises(OSError, match="Read-only"):
        (copy.parent / "beside").touch()
    with open_inactive(copy, live_directory=None) as snapshot:
        assert snapshot.integrity() == []


@pytest.mark.parametrize("with_header", [False, True])
def test_a_large_file_of_nothing_is_refused_at_once(
    copy: Path, tmp_path: Path, *, with_header: bool
) -> None:
    """200 MB of holes are no database, and not one with a header of ours either."""
    file = tmp_path / "sparse"
    file.write_bytes(copy.read_bytes()[:100] if with_header else b"")
    os.truncate(file, 200 << 20)
    assert isinstance(refusal(file), Corrupt if with_header else Incompatible)


def test_a_file_that_shrinks_while_it_is_read_is_damage(copy: Path) -> None:
    """A file that somebody cuts meanwhile ends in an error, not in a crash of the process."""
    with open_inactive(copy, live_directory=None) as snapshot:
        os.truncate(copy, 8192)
        with pytest.raises(Corrupt):
            number(snapshot, COUNT_PROJECTS)


def test_a_path_may_hold_what_urls_may_not(copy: Path) -> None:
    """A path with a question mark, a percent sign and a space is that path."""
    odd = copy.with_name("a ?immutable=0#%41é.sqlite")
    copy.rename(odd)
    with open_inactive(odd, live_directory=None) as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_scratch_database_is_empty_strict_and_nameless(tmp_path: Path, *, on_disk: bool) -> None:
    """A scratch database has the schema, holds foreign keys, and has no name to be left behind."""
    with create_scratch(tmp_path / "scratch" if on_disk else None) as scratch:
        with scratch.snapshot() as snapshot:
            assert number(snapshot, COUNT_PROJECTS) == 0
        with scratch.transaction() as transaction:
            transaction.projection.write(INSERT_PROJECT, project_id="p")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(AssertionError, match="FOREIGN KEY"):
            orphan(scratch)
        with scratch.snapshot() as snapshot:
            assert number(snapshot, COUNT_PROJECTS) == 1


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


@pytest.mark.parametrize("change", [-1, 1, 4_096])
def test_a_file_that_is_not_as_long_as_its_pages(copy: Path, change: int) -> None:
    """A byte that was cut off or added is damage, whatever SQLite makes of it."""
    content = copy.read_bytes()
    copy.write_bytes(content[:change] if change < 0 else content + b"x" * change)
    with pytest.raises(Corrupt), open_inactive(copy, live_directory=None):
        pass
