"""A workflow is loaded in a process of its own, which ends in any case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProblemsFound, Refused, Unavailable
from pi_workflows.base.limits import CHILD_ANSWER_MS
from pi_workflows.cli.resolving import resolve

pytestmark = pytest.mark.slow


class Impatient:
    """A clock on which the child's whole time passes at each look."""

    def __init__(self) -> None:
        self._looks = 0

    def now_ms(self) -> int:
        """Return a wall time that nobody asks for."""
        raise AssertionError

    def monotonic_ns(self) -> int:
        """Return a time that leaps."""
        self._looks += 1
        return self._looks * (CHILD_ANSWER_MS + 1) * 1_000_000


def request(directory: Path, content: str) -> dict[str, Json]:
    """Write a workflow's file and ask for it."""
    file = directory / "sample_workflow.py"
    file.write_text(content)
    return {
        "operation": "check",
        "projectPath": str(directory),
        "definitionsPath": str(directory / "none"),
        "target": str(file),
    }


def processes_in(directory: Path) -> Iterator[int]:
    """Yield every process that works in a directory."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                here = (each / "cwd").readlink()
            except OSError:
                continue
            if here == directory:
                yield int(each.name)


def test_a_file_that_ends_its_process(tmp_path: Path) -> None:
    """A file that kills the process that loads it is refused."""
    with pytest.raises(Refused, match="ended before it had answered") as caught:
        resolve(request(tmp_path, "import os\nos._exit(3)\n"))
    assert caught.value.reason_code == "resolverFailed"


def test_a_file_that_never_ends(tmp_path: Path) -> None:
    """A file that takes too long is given up, and its process is ended with what it started."""
    content = "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\ntime.sleep(600)\n"
    with pytest.raises(Refused, match="took longer than 30 s"):
        resolve(request(tmp_path, content), clock=Impatient())
    assert list(processes_in(tmp_path)) == []


def test_a_file_that_leaves_something_behind(tmp_path: Path) -> None:
    """What a file starts while it is loaded ends with the process that loaded it."""
    content = "import subprocess\nsubprocess.Popen(['sleep', '600'])\n"
    with pytest.raises(ProblemsFound):
        resolve(request(tmp_path, content))
    assert list(processes_in(tmp_path)) == []


def test_a_file_whose_child_leaves_the_group(tmp_path: Path) -> None:
    """What a file starts in a session of its own ends with the process that loaded it too."""
    content = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    with pytest.raises(ProblemsFound):
        resolve(request(tmp_path, content))
    assert list(processes_in(tmp_path)) == []


def test_a_file_that_prints(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What a file prints goes to standard error and never into the answer."""
    with pytest.raises(ProblemsFound):
        resolve(request(tmp_path, "print('hello')\nprint('{}', flush=True)\n"))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n{}\n")


def test_a_process_that_cannot_start(tmp_path: Path) -> None:
    """A project that is gone by now is told, not thrown."""
    asked = request(tmp_path, "")
    asked["projectPath"] = str(tmp_path / "gone")
    with pytest.raises(Unavailable, match="could not be started"):
        resolve(asked)
