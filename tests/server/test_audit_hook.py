"""Python code of the server cannot reach the live database behind SQLite's back."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pi_workflows.server.audit_hook import LiveFileTouchedError, guard


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """A guarded file with a sidecar, a link to it and another file beside it."""
    directory = tmp_path.resolve()
    file = directory / "state.sqlite"
    file.write_bytes(b"precious")
    (directory / "state.sqlite-wal").write_bytes(b"log")
    (directory / "other").write_bytes(b"other")
    (directory / "hard").hardlink_to(file)
    (directory / "soft").symlink_to(file)
    release = guard(file)
    yield file
    release()
    assert file.read_bytes() == b"precious"


def _open_relative(file: Path) -> None:
    here = Path.cwd()
    os.chdir(file.parent)
    try:
        Path(file.name).open("rb").close()
    finally:
        os.chdir(here)


def _remove_in_directory(file: Path) -> None:
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.unlink(file.name, dir_fd=directory)
    finally:
        os.close(directory)


_WAYS: dict[str, Callable[[Path], object]] = {
    "open": lambda file: file.open("rb"),
    "open by bytes": lambda file: open(os.fsencode(file), "rb"),  # noqa: PTH123, SIM115 - the way under test
    "os.open": lambda file: os.open(file, os.O_RDONLY),
    "relative": _open_relative,
    "hard link": lambda file: (file.parent / "hard").read_bytes(),
    "symbolic link": lambda file: (file.parent / "soft").read_bytes(),
    "/proc": lambda file: Path(f"/proc/self/root{file}").read_bytes(),
    "sidecar": lambda file: Path(f"{file}-wal").read_bytes(),
    "missing sidecar": lambda file: Path(f"{file}-shm").write_bytes(b""),
    "copy from": lambda file: shutil.copyfile(file, file.parent / "copy"),
    "copy onto": lambda file: shutil.copyfile(file.parent / "other", file),
    "remove": lambda file: file.unlink(),
    "remove in directory": _remove_in_directory,
    "rename": lambda file: file.rename(file.parent / "moved"),
    "rename onto": lambda file: (file.parent / "other").rename(file),
    "link": lambda file: (file.parent / "third").hardlink_to(file),
    "truncate": lambda file: os.truncate(file, 0),
    "chmod": lambda file: file.chmod(0o644),
    "a second SQLite": lambda file: importlib.import_module("sqlite3").connect(file),
    "rmtree": lambda file: shutil.rmtree(file.parent, ignore_errors=False),
}


@pytest.mark.parametrize("way", _WAYS)
def test_pitfall_01_no_code_of_ours_opens_the_live_file(database: Path, way: str) -> None:
    """Opening, replacing or removing the file or a sidecar is stopped, whatever way it takes."""
    with pytest.raises(LiveFileTouchedError):
        _WAYS[way](database)


def test_other_files_are_nobodys_business(database: Path) -> None:
    """What is not the database may be opened, written and removed beside it."""
    other = database.parent / "other"
    other.write_bytes(b"more")
    other.rename(database.parent / "moved")
    (database.parent / "moved").unlink()


def test_a_released_file_may_be_touched(tmp_path: Path) -> None:
    """After the guard ended the file is a file like any other."""
    file = tmp_path.resolve() / "state.sqlite"
    file.write_bytes(b"x")
    guard(file)()
    assert file.read_bytes() == b"x"
    file.unlink()
