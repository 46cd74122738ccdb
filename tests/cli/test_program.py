"""The program as it is installed: quick to start, and never a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from tests.cli.installation import PROGRAM, Installation

HEAVY = ("pydantic", "rich", "trio", "apsw", "pi_workflows.protocol", "pi_workflows.server")
LOADED = f"""
import sys
from pi_workflows.cli.program import run
run(["--help"])
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
BUG = f"""
import sys
sys.argv = ["pi-workflows", *{{words!r}}]
from pi_workflows.cli import listing
def broken(*_):
    raise AssertionError("two\\nlines")
listing.list_runs = broken
{PROGRAM}
"""

# Ctrl-C at the moment in which a module is to be loaded.
INTERRUPTED = f"""
import os, signal, sys
class Interrupting:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {{moment!r}}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting)
sys.argv = ["pi-workflows", "workflows"]
{PROGRAM}
"""


def python(fresh: Installation, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", script],
        env=fresh.variables,
        cwd=fresh.project,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("moment", ["typer", "pi_workflows.cli.app", "pi_workflows.cli.checking"])
def test_an_interrupt_while_it_is_loaded(moment: str, fresh: Installation) -> None:
    """Before a command begins Ctrl-C ends the program without a word, then with one line."""
    done = python(fresh, INTERRUPTED.format(moment=moment))
    is_begun = moment == "pi_workflows.cli.checking"
    code, said = (130, "pi-workflows: Interrupted.\n") if is_begun else (-signal.SIGINT, "")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_help_loads_nothing_that_takes_time(fresh: Installation) -> None:
    """The help of the program loads neither models nor displays nor the server."""
    assert python(fresh, LOADED).stderr.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("workflows",), ("workflows", "--json")], ids=" ".join)
def test_an_output_that_takes_nothing(words: tuple[str, ...], fresh: Installation) -> None:
    """A disk that is full gets one line on standard error and exit code 1."""
    (fresh.project / ".pi" / "workflows").mkdir(parents=True)
    (fresh.project / ".pi" / "workflows" / "one_workflow.py").touch()
    script = f"import sys\nsys.argv = ['pi-workflows', *{words!r}]\n{PROGRAM}"
    with Path("/dev/full").open("w", encoding="ascii") as full:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=fresh.variables,
            cwd=fresh.project,
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    said = "pi-workflows: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed(closed: str, fresh: Installation) -> None:
    """Whatever streams a program is started without, it works and opens nothing in their place."""
    script = f'exec "$0" -c "$1" runs --json {closed}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, PROGRAM],
        env=fresh.variables,
        cwd=fresh.project,
        check=False,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b'"items":[]' in done.stdout) == (">&-" not in closed.split())


@pytest.mark.slow
def test_a_directory_that_is_gone(fresh: Installation) -> None:
    """In a directory that was removed, paths that need one are wrong usage, and nothing breaks."""
    words = (("runs", "--project", "."), ("state", "backup", "x"), ("check", "./x_workflow.py"))
    for each in words:
        script = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" -c "$@"'
        done = subprocess.run(
            ["sh", "-c", script, sys.executable, PROGRAM, *each],
            env=fresh.variables,
            cwd=fresh.project,
            check=False,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.slow
def test_our_own_mistake_is_one_line(fresh: Installation) -> None:
    """A bug ends in one line that says where, never in a traceback."""
    done = python(fresh, BUG.format(words=("runs",)))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("pi-workflows: AssertionError: two lines at <string>:6")
    document = canonical.decode(python(fresh, BUG.format(words=("runs", "--json"))).stdout.encode())
    assert isinstance(document, dict)
    assert document["code"] == "internalError"


@pytest.mark.slow
def test_the_module_s_program_ends_with_the_command_s_code(fresh: Installation) -> None:
    """The exit status of the process is the command's."""
    with fresh.spawned("server", "status") as child:
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (3, b"")
    assert err.decode() == (
        "pi-workflows: No server is running. Start one: pi-workflows server start\n"
    )
