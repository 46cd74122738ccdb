"""A file that a person may not read, and a new file where there can be none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from tests.cli.installation import PROGRAM, Installation

pytestmark = pytest.mark.slow
# Root may read everything, unless it gives that right away.
AS_OTHERS = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)
CLOSED = (
    ("state", "verify", "{file}"),
    ("audit", "log", "{file}"),
    ("audit", "rebuild", "{file}"),
    ("show", "say-1", "--file", "{file}"),
    ("search", "say", "--file", "{file}"),
)


@pytest.mark.parametrize("words", CLOSED, ids=" ".join)
def test_a_file_that_may_not_be_read(
    words: tuple[str, ...], file: Path, fresh: Installation
) -> None:
    """One answer, exit code 4 `fileUnreadable`, be it the file or its directory that is closed."""
    closed = fresh.project / "closed"
    closed.mkdir()
    shutil.copy(file, closed / "inside")
    closed.chmod(0)
    file.chmod(0)
    for name in (file.name, "closed/inside"):
        typed = [word.format(file=name) for word in words]
        done = subprocess.run(
            [*AS_OTHERS, sys.executable, "-c", PROGRAM, *typed, "--json"],
            env=fresh.variables,
            cwd=fresh.project,
            check=False,
            capture_output=True,
        )
        told = canonical.decode(done.stdout)
        assert isinstance(told, dict), done.stderr
        assert (done.returncode, told["code"], told["field"]) == (4, "fileUnreadable", name)
    closed.chmod(0o700)


def test_where_no_file_can_be(file: Path, fresh: Installation) -> None:
    """A directory that takes no file is refused by the name that was asked for, not by ours."""
    for words in (
        ("audit", "rebuild", file.name, "--to", "/proc/new.sqlite"),
        ("audit", "capsule", file.name, "--run", "say", "--to", "/proc/new.sqlite"),
        ("state", "backup", "/proc/new.sqlite"),
    ):
        done = fresh.cli(*words, "--json")
        assert (done.code, done.document["code"]) == (1, "targetUnusable")
        assert done.document["field"] == "/proc/new.sqlite"
        assert ".state-" not in str(done.document)
