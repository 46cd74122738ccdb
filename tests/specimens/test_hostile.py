"""Each hostile case of the state contract, section 8, has the result that is required of it."""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrations_forbidden.specimens.hostile import MAIN, OPENS, SPECIMENS, Specimen
from pi_workflows.base.errors import Corrupt, Incompatible, TransitionDenied, WorkflowsError
from pi_workflows.base.sql import Statement
from pi_workflows.kernel.verify import verify
from pi_workflows.server.lock import ProcessLock
from pi_workflows.store.backup import backup
from pi_workflows.store.database import Store
from pi_workflows.store.header import read_header
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from pi_workflows.store.snapshot import Snapshot
from projections import route
from tests.kernel.harness import START_MS
from tests.specimens.refusal import REFUSAL

ROOT = Path(__file__).resolve().parents[2]
EPOCH = Statement("epoch", "SELECT epoch FROM workflow_host_state")
UPDATED = Statement("updated", "SELECT updated_at FROM schema_meta")
# Of the three commits of a log, those that it still holds whole.
COMMITS_LEFT = {"log-tail-cut": 2, "log-half-cut": 1, "last-frame-flipped": 2}
# A case of processes, disks and clocks, or of a moment: by the tests that hold it.
ELSEWHERE = {
    14: ("store/test_opening.py::test_a_second_process_is_refused",),
    15: ("store/test_transaction.py::test_kill_shows_all_or_nothing",),
    16: ("store/test_faults.py::test_a_full_disk_rolls_back_whole_and_works_again",),
    17: ("store/test_faults.py::test_a_failed_sync_at_commit_is_an_unknown_outcome",),
    18: ("process/test_kill.py::test_a_run_survives_twenty_kills",),
    20: ("store/test_backup.py::test_a_hard_link_of_the_live_database_is_no_target",),
    21: (
        "store/test_backup.py::test_a_swapped_directory_gets_nothing",
        "store/test_backup.py::test_a_swapped_name_gets_nothing",
    ),
    22: (
        "store/test_backup.py::test_a_full_disk_leaves_no_copy",
        "store/test_backup.py::test_a_call_that_fails_leaves_no_copy",
    ),
    23: ("store/test_backup.py::test_commits_go_on_during_a_backup",),
    24: ("store/test_inactive.py::test_no_mount_leads_to_the_live_database",),
    25: ("store/test_inactive.py::test_a_read_only_disk_is_enough",),
    29: ("base/test_canonical.py::test_what_json_cannot_hold_is_refused_with_its_path",),
    30: (
        "server/test_timers.py::test_wall_clock_that_steps_back_takes_no_active_time",
        "server/test_lifetime.py::test_pitfall_19_a_server_that_slept_begins_again",
    ),
}
# Those of retention come with retention.
LATER = {26, 27}


def named(specimen: Specimen) -> str:
    """Return how a test calls a specimen."""
    return f"{specimen.number}-{specimen.name}"


def only(chosen: Callable[[Specimen], object]) -> pytest.MarkDecorator:
    """Run a test for some of the specimens."""
    found = [each for each in SPECIMENS if chosen(each)]
    assert found
    return pytest.mark.parametrize("specimen", found, ids=named)


def contents(directory: Path) -> dict[str, tuple[int, str]]:
    """Return everything below a directory: its mode, and its target or the digest of its bytes."""
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(directory.rglob("*")):
        content = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(directory))] = (path.lstat().st_mode, content)
    return found


def made(specimen: Specimen, base: Path, directory: Path) -> Path:
    """Make a specimen in a directory of its own, or skip the test."""
    directory.mkdir(mode=0o700)
    try:
        return specimen.make(base, directory)
    except PermissionError as error:
        pytest.skip(f"this user cannot make it: {error}")


def start(directory: Path) -> Store:
    """Open the live database of a directory, as a server does."""
    return Store.open(directory, now_ms=1, app_version="test")


def raised(snapshot: Snapshot) -> int:
    """Return the number that every commit of a specimen's log raises, here and in another table."""
    epoch, updated = snapshot.one(int, EPOCH), snapshot.one(int, UPDATED)
    assert epoch is not None
    assert updated is not None
    assert epoch - updated == 1 - START_MS, "half a commit"
    return epoch


def violations(snapshot: Snapshot) -> list[str]:
    """Return the codes of the rules that a database breaks."""
    found = verify(snapshot, quick=False, scratch=lambda: create_scratch(None), projectors=route)
    return [each.code for each in found.violations]


def judged(error: WorkflowsError, code: str) -> None:
    """Check a refusal: its code, and of what concerns the content the class and the exit code."""
    assert error.reason_code == code
    if code == "stateIncompatible":
        assert isinstance(error, Incompatible)
        assert error.message == REFUSAL
    if code == "stateCorrupt":
        assert isinstance(error, Corrupt)
    if code in {"stateIncompatible", "stateCorrupt"}:
        assert error.exit_code == 4


@contextmanager
def unchanged(directory: Path) -> Generator[None]:
    """Check that a body changes, makes and removes nothing below a directory."""
    before = contents(directory)
    yield
    assert contents(directory) == before


@only(lambda each: each.live not in {"", OPENS})
def test_a_server_refuses_it(specimen: Specimen, base: Path, tmp_path: Path) -> None:
    """It is refused by type and text, and every byte, mode and name is what it was."""
    path = made(specimen, base, tmp_path / "specimen")
    with unchanged(tmp_path), pytest.raises(WorkflowsError) as caught:
        start(path.parent)
    judged(caught.value, specimen.live)


@only(lambda each: each.live == OPENS)
def test_a_server_starts_with_it(specimen: Specimen, base: Path, tmp_path: Path) -> None:
    """It is accepted, made private, and holds whole commits only; the next start accepts it too."""
    path = made(specimen, base, tmp_path / "specimen")
    with open_inactive(base, live_directory=None) as sound:
        first = raised(sound)
    for _ in range(2):
        store = start(path.parent)
        with store.verification() as read:
            assert raised(read) - first == COMMITS_LEFT.get(specimen.name, 0)
            expected = ["integrity"] if specimen.name == "corrupt-page" else []
            assert violations(read) == expected
        store.close()
        assert path.stat().st_mode & 0o777 == 0o600
        assert [each.name for each in path.parent.iterdir() if each.name != "host"] == [MAIN]


@only(lambda each: each.offline not in {"", OPENS})
def test_a_look_into_it_is_refused(specimen: Specimen, base: Path, tmp_path: Path) -> None:
    """A command that reads the file refuses it, and leaves no trace."""
    path = made(specimen, base, tmp_path / "specimen")
    with (
        unchanged(tmp_path),
        pytest.raises(WorkflowsError) as caught,
        open_inactive(path, live_directory=tmp_path / "specimen" / "state"),
    ):
        pass
    judged(caught.value, specimen.offline)


@only(lambda each: each.offline == OPENS)
def test_a_look_into_it_finds_what_is_there(specimen: Specimen, base: Path, tmp_path: Path) -> None:
    """A command reads the file without a trace; damage inside is found and not repaired."""
    path = made(specimen, base, tmp_path / "specimen")
    with unchanged(tmp_path), open_inactive(path, live_directory=None) as snapshot:
        expected = ["integrity"] if specimen.name == "corrupt-page" else []
        assert violations(snapshot) == expected
    for directory in tmp_path.rglob("*/"):
        directory.chmod(0o700)


@only(lambda each: each.backup)
def test_a_backup_there_is_refused(specimen: Specimen, base: Path, tmp_path: Path) -> None:
    """The target is left alone, nothing lies beside it, and the live database goes on."""
    path = made(specimen, base, tmp_path / "specimen")
    store = start(tmp_path / "specimen" / "state")
    names = set(contents(tmp_path))
    with pytest.raises(WorkflowsError) as caught:
        backup(store, path)
    judged(caught.value, specimen.backup)
    assert set(contents(tmp_path)) == names
    with store.snapshot() as read:
        assert read.integrity() == []
    store.crash()


@only(lambda each: each.name == "corrupt-page")
def test_damage_is_not_backed_up(specimen: Specimen, base: Path, tmp_path: Path) -> None:
    """Hostile case 3: of a damaged page there is no backup, and it is not repaired."""
    path = made(specimen, base, tmp_path / "specimen")
    store = start(path.parent)
    with pytest.raises(Corrupt) as caught:
        backup(store, tmp_path / "backup.sqlite")
    assert caught.value.exit_code == 4
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == ["specimen"]
    with open_inactive(path, live_directory=None) as snapshot:
        assert snapshot.integrity() != []


@only(lambda each: each.number == 8)
def test_a_refused_file_keeps_its_journal_mode(
    specimen: Specimen, base: Path, tmp_path: Path
) -> None:
    """Hostile case 8: a stranger's file is in the mode that the stranger left it in."""
    path = made(specimen, base, tmp_path / "specimen")
    before = read_header(path)
    assert before is not None
    assert before.has_wal == specimen.name.endswith("-wal")
    with pytest.raises(Incompatible):
        start(path.parent)
    assert read_header(path) == before


@only(lambda each: each.number == 28)
def test_a_lock_of_a_killed_server_holds_nobody_up(
    specimen: Specimen, base: Path, tmp_path: Path
) -> None:
    """Hostile case 28: the system let the lock go with the process; the next server takes it."""
    path = made(specimen, base, tmp_path / "specimen")
    file = path.parent / "host" / "host.lock"
    lock = ProcessLock.take(file)
    assert file.read_text() == str(os.getpid())
    with pytest.raises(TransitionDenied):
        ProcessLock.take(file)
    lock.close()


def test_every_case_is_proved() -> None:
    """Each of the thirty cases has a specimen, tests that exist, or comes with its feature."""
    cases = {each.number for each in SPECIMENS} | set(ELSEWHERE)
    assert cases | LATER == set(range(1, 31))
    assert not cases & LATER
    for place in (place for places in ELSEWHERE.values() for place in places):
        file, _, name = place.partition("::")
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, place


def test_specimens_are_told_apart() -> None:
    """No two have the same place, and each expects something."""
    assert len({named(each) for each in SPECIMENS}) == len(SPECIMENS)
    assert all(each.live or each.offline or each.backup for each in SPECIMENS)


@pytest.mark.slow
def test_they_can_be_looked_at(base: Path, tmp_path: Path) -> None:
    """The program writes each of them into a directory of its own and says what must come of it."""
    command = [sys.executable, "-m", "migrations_forbidden.specimens", str(base), "new"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    hostile = [line for line in lines if not line.startswith("new/violations/")]
    directories = {path.name for path in (tmp_path / "new").iterdir()} - {"violations"}
    assert len(hostile) == len(SPECIMENS) == len(directories)
    assert "new/01-text/state.sqlite  server: stateIncompatible, file: stateIncompatible" in lines
    for directory in (tmp_path / "new").rglob("*/"):
        directory.chmod(0o700)
