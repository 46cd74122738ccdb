"""A file is exactly ours or refused, and a refused one keeps every byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from pi_workflows.base.errors import Corrupt, Incompatible, Unavailable, WorkflowsError
from pi_workflows.store.connection import check_library
from pi_workflows.store.database import Store
from pi_workflows.store.driver import connect
from pi_workflows.store.header import read_header
from pi_workflows.store.shape import create_schema
from tests.store.bench import (
    NOW_MS,
    add_events,
    add_project,
    bytes_of,
    is_locked,
    open_store,
    projects,
    raw,
    run,
)

FORCE = True
REFUSAL = (
    "Pi Workflows durable state is incompatible. Back up and move state.sqlite with its -wal and "
    "-shm files, then start Pi Workflows to create a new state.sqlite database. The incompatible "
    "state was not changed."
)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A state directory whose server stopped in order, with a few events."""
    store = open_store(tmp_path)
    add_events(store, "run-1", 3)
    add_project(store, "p")
    store.close()
    return tmp_path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A state directory whose server died, with everything it committed in the log."""
    store = open_store(tmp_path)
    add_events(store, "run-1", 3)
    add_project(store, "p")
    store.crash()
    assert (tmp_path / "state.sqlite-wal").stat().st_size > 0
    return tmp_path


def refused(directory: Path) -> WorkflowsError:
    """Open a directory's database, which must fail and change nothing; return the refusal."""
    before = bytes_of(directory)
    with pytest.raises(WorkflowsError) as caught:
        open_store(directory)
    assert bytes_of(directory) == before
    return caught.value


def assert_incompatible(directory: Path, reason: str) -> None:
    """Assert the fixed refusal, and that its note for the log says why."""
    error = refused(directory)
    assert isinstance(error, Incompatible)
    assert error.message == REFUSAL
    assert reason in " ".join(error.__notes__)


def mutate(path: Path, *statements: str) -> None:
    """Change a stopped database behind our back."""
    connection = raw(path)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def test_no_database_becomes_an_empty_one(tmp_path: Path) -> None:
    """The first start creates the database, mode 0600, in a directory of mode 0700."""
    directory = tmp_path / "deep" / "workflows"
    mask = os.umask(0)
    try:
        open_store(directory).close()
    finally:
        os.umask(mask)
    assert (directory / "state.sqlite").stat().st_mode & 0o7777 == 0o600
    assert directory.stat().st_mode & 0o7777 == 0o700
    assert sorted(path.name for path in directory.iterdir()) == ["state.sqlite"]


@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
def test_no_umask_changes_a_mode(tmp_path: Path, umask: int) -> None:
    """File and log are ours to read and write and nobody else's, whatever the umask says."""
    mask = os.umask(umask)
    try:
        store = open_store(tmp_path)
        add_project(store, "p")
    finally:
        os.umask(mask)
    for name in ("state.sqlite", "state.sqlite-wal"):
        assert (tmp_path / name).stat().st_mode & 0o7777 == 0o600
    store.close()


def test_orderly_stop_leaves_one_file(stopped: Path) -> None:
    """After an orderly stop one file holds everything, in a mode that needs no log."""
    assert [path.name for path in stopped.iterdir()] == ["state.sqlite"]
    header = read_header(stopped / "state.sqlite")
    assert header is not None
    assert not header.has_wal
    store = open_store(stopped)
    assert projects(store) == 1
    store.close()


def test_what_was_committed_survives_a_crash(killed: Path) -> None:
    """A server that died left its commits in the log, and the next one has them."""
    store = open_store(killed)
    assert projects(store) == 1
    store.close()


def test_opening_a_crashed_database_changes_nothing_before_it_is_accepted(killed: Path) -> None:
    """A crashed database of the wrong shape keeps its main file and its log."""
    # A foreign trigger, committed to the log as our own commits are.
    connection = connect(str(killed / "state.sqlite"))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.wal_autocheckpoint(0)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON projects BEGIN SELECT 1; END")
    connection.close()
    assert_incompatible(killed, "trigger t")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """Hostile case 1: a file that is not SQLite's."""
    (tmp_path / "state.sqlite").write_bytes(b"hello, this is a text file\n" * 50)
    assert_incompatible(tmp_path, "no SQLite database")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """Hostile case 2: SQLite would take zero bytes for a new database."""
    (tmp_path / "state.sqlite").touch()
    assert_incompatible(tmp_path, "no SQLite database")


def test_a_truncated_file_is_corrupt(stopped: Path) -> None:
    """Hostile case 4: half a file is damage, said so by type."""
    path = stopped / "state.sqlite"
    os.truncate(path, path.stat().st_size // 8192 * 4096)
    assert isinstance(refused(stopped), Corrupt)


def test_a_torn_log_loses_whole_commits_only(killed: Path) -> None:
    """Hostile case 5: of a log whose tail is cut the last whole commit remains."""
    wal = killed / "state.sqlite-wal"
    os.truncate(wal, wal.stat().st_size - 100)
    store = open_store(killed)
    assert projects(store) == 0
    with store.snapshot() as snapshot:
        assert snapshot.integrity() == []
        assert snapshot.foreign_keys() == []
    store.close()


def test_a_flipped_frame_ends_the_log(killed: Path) -> None:
    """Hostile case 6: a frame whose checksum is wrong ends the log before its commit."""
    wal = killed / "state.sqlite-wal"
    data = bytearray(wal.read_bytes())
    data[-10] ^= 0x40
    wal.write_bytes(data)
    store = open_store(killed)
    assert projects(store) == 0
    store.close()


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_log_without_its_database_is_refused(killed: Path, suffix: str) -> None:
    """Hostile case 7: SQLite would replay a stale log into the new file, so none is made."""
    (killed / "state.sqlite").rename(killed / "moved")
    (killed / "state.sqlite-wal").rename(killed / f"state.sqlite{suffix}")
    assert_incompatible(killed, f"state.sqlite{suffix} lies there without")
    assert not (killed / "state.sqlite").exists()


def test_a_log_of_another_time_is_refused(killed: Path) -> None:
    """A log beside a file that was closed in order is not that file's."""
    wal = (killed / "state.sqlite-wal").read_bytes()
    open_store(killed).close()
    (killed / "state.sqlite-wal").write_bytes(wal)
    assert_incompatible(killed, "a write-ahead log lies beside")


def test_an_empty_log_is_no_reason(stopped: Path) -> None:
    """An empty log, which a power loss can bring back, is nobody's."""
    (stopped / "state.sqlite-wal").touch(mode=0o600)
    store = open_store(stopped)
    assert projects(store) == 1
    store.close()


def test_shared_memory_is_no_reason(stopped: Path) -> None:
    """A leftover of shared memory is removed: the server needs none."""
    (stopped / "state.sqlite-shm").write_bytes(b"\0" * 32768)
    store = open_store(stopped)
    assert not (stopped / "state.sqlite-shm").exists()
    store.close()


def test_shared_memory_that_cannot_be_removed_lets_the_file_go(stopped: Path) -> None:
    """A start that fails after it opened the file leaves it to the next one."""
    (stopped / "state.sqlite-shm").mkdir()
    with pytest.raises(Unavailable) as caught:
        open_store(stopped)
    assert caught.value.reason_code == "storageFault"
    (stopped / "state.sqlite-shm").rmdir()
    connection = connect(str(stopped / "state.sqlite"))
    assert connection.execute("SELECT count(*) FROM projects").get == 1
    connection.close()


def test_a_refused_file_gets_no_shared_memory(killed: Path) -> None:
    """Judging a crashed file leaves no shared memory beside it."""
    connection = connect(str(killed / "state.sqlite"), vfs="unix-excl")
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.wal_autocheckpoint(0)
    connection.execute("DROP INDEX runs_status")
    connection.close()
    assert_incompatible(killed, "index runs_status")
    assert not (killed / "state.sqlite-shm").exists()


def test_a_refused_file_gets_no_log(stopped: Path) -> None:
    """A file in write-ahead mode that nothing lies beside is judged without making its log."""
    mutate(stopped / "state.sqlite", "CREATE TABLE t (a)", "PRAGMA journal_mode = WAL")
    header = read_header(stopped / "state.sqlite")
    assert header is not None
    assert header.has_wal
    assert_incompatible(stopped, "table t")
    assert [path.name for path in stopped.iterdir()] == ["state.sqlite"]


MUTATIONS: dict[str, tuple[str, ...]] = {
    "header names another": ("PRAGMA application_id = 7",),
    "header names another program": ("PRAGMA user_version = 2",),
    "schema_meta names another": ("UPDATE schema_meta SET schema_digest = zeroblob(32)",),
    "schema_meta names another schema": ("DELETE FROM schema_meta",),
    "index runs_status": ("DROP INDEX runs_status",),
    "table sqlitexevil": ("CREATE TABLE sqlitexevil (a)",),
    "view v": ("CREATE VIEW v AS SELECT 1",),
    "trigger t": ("CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END",),
    "index blobs_created": ("CREATE INDEX blobs_created ON blobs (created_at)",),
    "run_steps": ("DROP TABLE run_steps",),
}


@pytest.mark.parametrize("reason", MUTATIONS)
def test_another_identity_or_shape_is_refused(stopped: Path, reason: str) -> None:
    """Hostile cases 8, 9 and 10: right digest and foreign shape, or the reverse, or a stranger."""
    mutate(stopped / "state.sqlite", *MUTATIONS[reason])
    assert_incompatible(stopped, reason)
    header = read_header(stopped / "state.sqlite")
    assert header is not None
    assert not header.has_wal


def test_statistics_are_no_difference(stopped: Path) -> None:
    """SQLite's own statistics tables are ignored, by exact name."""
    mutate(stopped / "state.sqlite", "ANALYZE")
    open_store(stopped).close()


def test_a_hot_journal_beside_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """Hostile case 11: rolling a stranger's journal back would be writing."""
    source = tmp_path / "source"
    source.mkdir()
    path = source / "state.sqlite"
    connection = connect(str(path))
    create_schema(connection, now_ms=NOW_MS, app_version="")
    connection.execute("CREATE TABLE foreign_table (a)")
    connection.pragma("cache_size", 5)
    connection.execute("BEGIN")
    connection.execute("""
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
        INSERT INTO foreign_table SELECT hex(randomblob(200)) FROM n
    """)
    hot = tmp_path / "hot"
    shutil.copytree(source, hot)
    connection.close(FORCE)
    hot.chmod(0o700)
    assert (hot / "state.sqlite-journal").stat().st_size > 0
    assert_incompatible(hot, "SQLite refused to read it")


def swap_for_link(path: Path) -> None:
    """Put a symbolic link in the place of a file."""
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def swap_for_hard_link(path: Path) -> None:
    """Give a file a second name."""
    os.link(path, path.with_name("second"))


def swap_for_directory(path: Path) -> None:
    """Put a directory in the place of a file."""
    path.rename(path.with_name("elsewhere"))
    path.mkdir()


@pytest.mark.parametrize("swap", [swap_for_link, swap_for_hard_link, swap_for_directory])
def test_only_a_file_of_one_name_is_opened(stopped: Path, swap: Callable[[Path], None]) -> None:
    """Hostile case 12: a link, a second name or a directory is refused."""
    swap(stopped / "state.sqlite")
    assert_incompatible(stopped, "state.sqlite")


@pytest.mark.parametrize("swap", [swap_for_link, swap_for_hard_link])
def test_only_a_log_of_one_name_is_opened(killed: Path, swap: Callable[[Path], None]) -> None:
    """The log is held to the same rule as the file."""
    swap(killed / "state.sqlite-wal")
    assert_incompatible(killed, "state.sqlite-wal")


def test_a_loose_mode_is_tightened(killed: Path) -> None:
    """Hostile case 13: our own file and log become private again."""
    for name in ("state.sqlite", "state.sqlite-wal"):
        (killed / name).chmod(0o644)
    store = open_store(killed)
    for name in ("state.sqlite", "state.sqlite-wal"):
        assert (killed / name).stat().st_mode & 0o7777 == 0o600
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_of_another_user_is_refused(stopped: Path) -> None:
    """Hostile case 13: a file that belongs to somebody else is not ours."""
    os.chown(stopped / "state.sqlite", 12345, -1)
    assert_incompatible(stopped, "another user")


def test_a_crash_in_creation_leaves_no_second_name(stopped: Path) -> None:
    """A creation that was killed between its two names is completed by the next start."""
    os.link(stopped / "state.sqlite", stopped / ".state.sqlite.new-0123456789abcdef")
    (stopped / ".state.sqlite.new-ffffffffffffffff").touch()
    store = open_store(stopped)
    assert projects(store) == 1
    store.close()
    assert [path.name for path in stopped.iterdir()] == ["state.sqlite"]


SECOND = """
import sys
from pathlib import Path
from pi_workflows.base.errors import WorkflowsError
from tests.store.bench import open_store
try:
    open_store(Path(sys.argv[1]))
except WorkflowsError as error:
    print(type(error).__name__, error.reason_code)
"""


@pytest.mark.slow
@pytest.mark.parametrize("with_log", [False, True])
def test_a_second_process_is_refused(tmp_path: Path, *, with_log: bool) -> None:
    """Hostile case 14: the second server is told so, and the first goes on."""
    store = open_store(tmp_path)
    if with_log:
        add_project(store, "p")
    program = "import pi_workflows.store.connection as c\nc.BUSY_MS = 50\n" + SECOND
    done = run(program, str(tmp_path))
    assert done.stdout.strip() == "Unavailable writerBusy", done.stderr
    add_project(store, "q")
    assert projects(store) == 1 + with_log
    store.close()


@pytest.mark.slow
def test_nothing_gives_the_lock_away(tmp_path: Path) -> None:
    """No other process ever reads the live file, whatever this one opened and closed meanwhile.

    Closing any descriptor of the file drops every lock of this process, if SQLite does not know.
    """
    path = tmp_path / "state.sqlite"
    store = open_store(tmp_path)
    for act in (
        lambda: None,
        lambda: add_project(store, "p"),
        lambda: read_header(path),
        lambda: projects(store),
        lambda: verify(store),
        lambda: store.checkpoint(truncate=True),
        lambda: open_store(tmp_path).crash(),
    ):
        act()
        assert is_locked(store)
    store.close()


def verify(store: Store) -> None:
    """Read the store on a connection of its own, and close that."""
    with store.verification() as snapshot:
        assert snapshot.integrity() == []


def test_the_newest_event_is_checked(stopped: Path) -> None:
    """A database whose newest event is not what its digest says does not open."""
    mutate(
        stopped / "state.sqlite",
        "UPDATE events SET actor_type = 'human' WHERE event_seq = 3",
    )
    error = refused(stopped)
    assert isinstance(error, Corrupt)
    assert "Event 3" in error.message


def test_an_event_above_the_mark_is_damage(stopped: Path) -> None:
    """The counter of event numbers is never below the newest event."""
    mutate(stopped / "state.sqlite", "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'events'")
    assert isinstance(refused(stopped), Corrupt)


@pytest.mark.parametrize(
    ("version", "fine"), [("3.51.2", False), ("3.9.0", False), ("3.51.3", True), ("3.100.0", True)]
)
def test_an_old_library_is_refused(version: str, *, fine: bool) -> None:
    """A SQLite that may lose data is refused by its version, which the message names."""
    if fine:
        check_library(version)
        return
    with pytest.raises(Incompatible, match=version) as caught:
        check_library(version)
    assert caught.value.reason_code == "sqliteTooOld"


def test_what_the_system_refuses_is_said(tmp_path: Path) -> None:
    """A directory that cannot be made is an answer with its reason, not a traceback."""
    with pytest.raises(Unavailable) as caught:
        open_store(Path("/proc/nowhere/workflows"))
    assert caught.value.reason_code == "storageFault"
    assert caught.value.field is not None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at the first start leaves no file, and says so."""

    def full(_descriptor: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unavailable) as caught:
        open_store(tmp_path)
    assert caught.value.reason_code == "diskFull"
    assert list(tmp_path.iterdir()) == []
