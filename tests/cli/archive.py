"""What an installation left: a backup of runs of several kinds, and what was told of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.store.driver import connect
from tests.cli.installation import WORKFLOWS, Installation

HOSTILE: Final = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\nline"
UNTOLD: Final = "a-word-that-no-log-may-tell"
RUNS: Final = ("ask-1", "break-1", "large-1", "loop-1", "say-1", "stuck-1")
# So many that the log is longer than what a pipe holds.
ROUNDS: Final = 240


@dataclass(frozen=True, slots=True)
class Archive:
    """A backup beside nothing else.

    Attributes:
        file: The backup.
        told: What the server answered to `show` and to `events`, each with `--json`, by run.
    """

    file: Path
    told: dict[str, tuple[dict[str, Json], list[dict[str, Json]]]]


def make_archive(made: Installation) -> Archive:
    """Let an installation do its work, one run after the other, take a backup, and stop it."""
    line = str(WORKFLOWS / "line_workflow.py")
    text = canonical.encode({"word": HOSTILE}).decode()
    assert made.cli("run", line, "--run-id", "say-1", "--input", text).code == 0
    made.start("asks", "ask-1", canonical.encode({"question": UNTOLD}).decode())
    made.cli("watch", "ask-1")
    assert made.cli("answer", "ask-1", '{"decision":"ship"}').code == 0
    assert made.cli("watch", "ask-1").code == 0
    made.start("manual", "stuck-1", f'{{"gate":"{made.gate("gate")}"}}')
    assert made.cli("watch", "stuck-1").code == 12
    made.start("fails", "break-1")
    made.cli("watch", "break-1")
    again = made.cli("restart", "break-1", "--json").document["receipt"]
    assert isinstance(again, dict)
    made.cli("watch", str(again["runId"]))
    made.start("large", "large-1")
    assert made.cli("watch", "large-1").code == 10
    made.start("loop", "loop-1", f'{{"rounds":{ROUNDS}}}')
    assert made.cli("watch", "loop-1").code == 0
    told = {
        run_id: (
            made.cli("show", run_id, "--json").document,
            made.cli("events", run_id, "--json").documents,
        )
        for run_id in RUNS
    }
    file = made.root / "copy.sqlite"
    assert made.cli("state", "backup", str(file)).code == 0
    assert made.cli("server", "stop").code == 0
    return Archive(file, told)


def copied(archive: Archive, directory: Path) -> Path:
    """Return a copy of the backup in a directory, for a test of its own."""
    return Path(shutil.copy(archive.file, directory / "copy.sqlite"))


def spoil(file: Path, statement: str) -> None:
    """Let a hand change a file."""
    connection = connect(str(file))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(statement)
    connection.close()
