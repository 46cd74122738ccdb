"""A file is verified as the server verifies itself, and nothing is left of the check."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pi_workflows.audit.verification import verify_file
from pi_workflows.base.errors import AuthorityDenied, Incompatible, NotFound
from pi_workflows.store.driver import connect


@contextmanager
def read_only(directory: Path) -> Generator[None]:
    """Mount a directory onto itself, read-only, as a disk that nobody may write."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = str(directory)
    if subprocess.run(
        ["mount", "--bind", place, place], check=False, capture_output=True
    ).returncode:
        pytest.skip("this machine does not allow mounts")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_sound_file(stopped: Path) -> None:
    """No violation is found, progress is told, and neither the file nor its directory changes."""
    before = stopped.read_bytes()
    told: list[tuple[str, int]] = []
    sizes: list[int] = []
    found = verify_file(
        stopped,
        live_directory=None,
        is_quick=False,
        begun=sizes.append,
        progress=lambda name, count: told.append((name, count)),
    )
    assert found.violations == ()
    assert sizes == [max(count for name, count in told if name == "replay")]
    assert list(dict(told)) == list(found.checked)
    assert stopped.read_bytes() == before
    assert [path.name for path in stopped.parent.iterdir()] == [stopped.name]


def test_a_quick_check_is_a_part(stopped: Path) -> None:
    """Digests and replay are left out, everything else is the same."""
    quick = verify_file(stopped, live_directory=None, is_quick=True)
    full = verify_file(stopped, live_directory=None, is_quick=False)
    left_out = set(full.checked) - set(quick.checked)
    assert {"blobDigest", "eventDigest", "replay"} <= left_out
    assert set(quick.checked) < set(full.checked)


def test_a_changed_row_is_a_result(stopped: Path) -> None:
    """A file that breaks a rule is no error: the violation names its run."""
    connection = connect(str(stopped))
    connection.execute("UPDATE runs SET title = 'forged'")
    connection.close()
    found = verify_file(stopped, live_directory=None, is_quick=False)
    assert [(each.code, each.run_ids) for each in found.violations] == [("replay", ("run-1",))]


def test_the_live_file_is_refused_by_any_path(stopped: Path, tmp_path: Path) -> None:
    """Neither a link nor a second name leads to the live database."""
    other = tmp_path / "other.sqlite"
    other.symlink_to(stopped)
    hard = tmp_path / "hard.sqlite"
    os.link(stopped, hard)
    for path in (stopped, other, hard, stopped.parent / "." / stopped.name):
        with pytest.raises(AuthorityDenied) as caught:
            verify_file(path, live_directory=stopped.parent, is_quick=True)
        assert caught.value.reason_code == "liveFile"


def test_a_file_that_is_not_complete_is_refused(stopped: Path) -> None:
    """A log beside it means that it is not the whole."""
    stopped.with_name(f"{stopped.name}-wal").write_bytes(b"x")
    with pytest.raises(AuthorityDenied) as caught:
        verify_file(stopped, live_directory=None, is_quick=True)
    assert caught.value.reason_code == "notSelfContained"


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file that is no database of ours and a file that is not there are told apart."""
    text = tmp_path / "text"
    text.write_text("not a database")
    with pytest.raises(Incompatible):
        verify_file(text, live_directory=None, is_quick=True)
    with pytest.raises(NotFound):
        verify_file(tmp_path / "none", live_directory=None, is_quick=True)


def test_a_directory_that_cannot_be_written(stopped: Path) -> None:
    """A file on a read-only disk is replayed elsewhere."""
    with read_only(stopped.parent):
        found = verify_file(stopped, live_directory=None, is_quick=False)
    assert found.violations == ()
