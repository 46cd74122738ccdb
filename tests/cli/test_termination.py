"""A command that the system ends cleans up as after Ctrl-C, and says so in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeAlias

import pytest

from pi_workflows.base import canonical
from tests.cli.installation import PROGRAM, Installation
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow
WAIT_S = 60
# How often a command may be quicker than we are.
TRIES = 10
REBUILD = ("audit", "rebuild", "copy.sqlite", "--to", "new.sqlite")
CAPSULE = ("audit", "capsule", "copy.sqlite", "--run", "loop", "--to", "new.sqlite")


Ended: TypeAlias = tuple[int, str]
"""An exit code, and what was written to standard error."""


def until_begun(child: subprocess.Popen[bytes], directory: Path) -> None:
    """Wait until a command writes its file under another name, or has ended."""
    deadline = time.monotonic() + WAIT_S
    while child.poll() is None:
        assert time.monotonic() < deadline, "it never began"
        if any(name.startswith(".state-new-") for name in os.listdir(directory)):  # noqa: PTH208 - quick
            return


def ended(fresh: Installation, words: tuple[str, ...], *numbers: signal.Signals) -> Ended:
    """Send signals to a command that has begun; return its code and what it said."""
    for _ in range(TRIES):
        with fresh.spawned(*words) as child:
            until_begun(child, fresh.project)
            for number in numbers:
                child.send_signal(number)
            _, err = child.communicate(timeout=WAIT_S)
        if child.returncode != 0:
            return child.returncode, err.decode()
        (fresh.project / "new.sqlite").unlink()
    raise AssertionError("it always ended before")


@pytest.mark.parametrize(
    ("words", "number", "said"),
    [
        (REBUILD, signal.SIGTERM, "Terminated by SIGTERM"),
        (CAPSULE, signal.SIGHUP, "Terminated by SIGHUP"),
        (REBUILD, signal.SIGINT, "Interrupted"),
    ],
)
def test_nothing_is_left(
    words: tuple[str, ...], number: signal.Signals, said: str, file: Path, fresh: Installation
) -> None:
    """The file that was being written is gone; the code is the signal's, the line names it."""
    assert ended(fresh, words, number) == (128 + number, f"pi-workflows: {said}.\n")
    assert [path.name for path in fresh.project.iterdir()] == [file.name]


def test_the_second_signal_changes_nothing(file: Path, fresh: Installation) -> None:
    """Whoever is impatient does not keep the command from cleaning up."""
    code, said = ended(fresh, REBUILD, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM)
    assert (code in (129, 143), said.count("\n")) == (True, 1)
    assert [path.name for path in fresh.project.iterdir()] == [file.name]


def test_a_terminal_that_goes_away(file: Path, fresh: Installation) -> None:
    """When the window is closed nobody hears the line, and nothing is left all the same."""
    code = 0
    for _ in range(TRIES):
        with terminal(fresh, *REBUILD) as shown:
            until_begun(shown.child, fresh.project)
            shown.close()
            code = shown.child.wait(WAIT_S)
        if code != 0:
            break
        (fresh.project / "new.sqlite").unlink()
    assert code == 128 + signal.SIGHUP
    assert [path.name for path in fresh.project.iterdir()] == [file.name]


def test_nohup(file: Path, fresh: Installation) -> None:
    """A signal that was to be ignored is ignored."""
    with subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$0" -c "$@"', sys.executable, PROGRAM, *REBUILD],
        env=fresh.variables,
        cwd=fresh.project,
        stdout=subprocess.PIPE,
    ) as child:
        until_begun(child, fresh.project)
        child.send_signal(signal.SIGHUP)
        assert child.wait(WAIT_S) == 0
    assert (fresh.project / "new.sqlite").exists()
    assert file.exists()


def test_a_followed_run_goes_on(fresh: Installation) -> None:
    """The line and the document of a terminated `watch` name the run, which goes on."""
    gate = fresh.gate("gate")
    fresh.start("gated", "one", canonical.encode({"gate": str(gate)}).decode())
    for options in ((), ("--json",)):
        with fresh.spawned("watch", "one", *options) as child:
            assert child.stdout is not None
            child.stdout.readline()
            child.send_signal(signal.SIGTERM)
            out, err = child.communicate(timeout=WAIT_S)
        assert child.returncode == 128 + signal.SIGTERM
        assert b"Terminated by SIGTERM; one goes on." in (out if options else err)
    assert fresh.cli("show", "one", "--json").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_server_has_its_own_signals(number: signal.Signals, fresh: Installation) -> None:
    """`server run` stops in order at SIGTERM, and SIGHUP ends it in place as before."""
    with fresh.spawned("server", "run") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(number)
        _, err = child.communicate(timeout=WAIT_S)
    assert child.returncode == (0 if number is signal.SIGTERM else -number)
    assert b"Terminated" not in err
