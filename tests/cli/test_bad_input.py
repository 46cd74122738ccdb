"""What bad input gets: one clear line that names what is at fault, its exit code, nothing done."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base.errors import Incompatible
from tests.cli.installation import WORKFLOWS, Done, Installation

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
ASKS = str(WORKFLOWS / "asks_workflow.py")
FIXED_TEXT = str(Incompatible())


def runs_of(installation: Installation) -> int:
    """Return how many runs there are."""
    total = installation.cli("runs", "--json").document["total"]
    assert isinstance(total, int)
    return total


def said(done: Done) -> str:
    """Return the one line that a failed command says."""
    (line,) = done.err.splitlines()
    return line


def problems_of(done: Done) -> list[tuple[object, object]]:
    """Return code and place of every problem in an error document."""
    problems = done.document["problems"]
    assert isinstance(problems, list)
    return [(each["code"], each["where"]) for each in problems if isinstance(each, dict)]


def test_three_mistakes_are_three_problems(fresh: Installation) -> None:
    """A workflow with three mistakes reports three, in text and for programs; no run exists."""
    mistaken = str(WORKFLOWS / "mistaken_workflow.py")
    done = fresh.cli("run", mistaken)
    first, *each = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert first == "pi-workflows: 3 problems:"
    assert [line.split(":")[0] for line in each] == ["  name", "  edges.one", "  start"]
    document = fresh.cli("run", mistaken, "--json")
    assert problems_of(document) == [
        ("nameInvalid", "name"),
        ("edgeTargetUnknown", "edges.one"),
        ("startUnknown", "start"),
    ]
    assert runs_of(fresh) == 0


def test_input_that_its_model_refuses(fresh: Installation) -> None:
    """Each field at fault is named by its path; no run exists."""
    done = fresh.cli("run", LINE, "--input", '{"times":0,"wrod":"x"}', "--json")
    assert done.code == 1
    assert problems_of(done) == [("inputInvalid", "input.times"), ("inputInvalid", "input.wrod")]
    assert runs_of(fresh) == 0


def test_an_unknown_workflow(installation: Installation) -> None:
    """A name that no file answers to, and a path where no file is, are named."""
    name = installation.cli("run", "nowhere")
    assert name.code == 1
    assert "nowhere: there is no workflow of this name" in said(name)
    (installation.project / "todo.txt").touch()
    assert "the name of its file must end in _workflow.py" in said(
        installation.cli("run", "todo.txt")
    )
    for directory in (".", str(installation.project)):
        assert "is a directory" in said(installation.cli("run", directory))
    path = installation.cli("run", "./nix_workflow.py")
    assert path.code == 1
    assert f"{installation.project}/nix_workflow.py" in said(path)


def test_output_that_is_no_json(installation: Installation) -> None:
    """A node that returns something else fails its run; the message names node and place."""
    done = installation.cli(
        "run", str(WORKFLOWS / "unwritable_workflow.py"), "--run-id", "unwritable-1"
    )
    assert done.code == 1
    assert "unwritable-1 failed after" in done.err
    assert "collect: output.words" in done.err


def test_a_value_over_its_limit(installation: Installation) -> None:
    """An input over its limit is refused with its size and what to do instead."""
    value = installation.root / "large.json"
    value.write_text(f'{{"word":"{"x" * 600_000}"}}')
    done = installation.cli("run", LINE, "--input", f"@{value}")
    assert done.code == 1
    assert "600," in said(done)
    assert "file" in said(done)
    value.write_text(f'{{"word":"{"x" * 2_000_000}"}}')
    larger = installation.cli("run", LINE, "--input", f"@{value}", "--json")
    assert (larger.code, larger.document["code"]) == (2, "valueTooLarge")


def test_a_run_id_that_is_taken(installation: Installation) -> None:
    """The same ID with another input is a conflict that names the ID; the first run stays."""
    assert installation.cli("run", LINE, "--run-id", "taken-1").code == 0
    done = installation.cli("run", LINE, "--run-id", "taken-1", "--input", '{"word":"other"}')
    assert done.code == 1
    assert "taken-1" in said(done)
    other = installation.cli(
        "run", LINE, "--run-id", "taken-1", "--input", '{"word":"other"}', "--json"
    )
    assert other.document["code"] == "runIdTaken"
    assert "hello" in installation.cli("show", "taken-1").out


@pytest.mark.parametrize(
    "words",
    [
        ("show", "nix"),
        ("watch", "nix"),
        ("view", "nix"),
        ("events", "nix"),
        ("pause", "nix"),
        ("resume", "nix"),
        ("cancel", "nix"),
        ("restart", "nix"),
        ("answer", "nix", "yes"),
        ("effects", "--run", "nix"),
    ],
    ids=" ".join,
)
def test_an_unknown_run(words: tuple[str, ...], installation: Installation) -> None:
    """Every command about a run says that there is none, names it, and how to list them."""
    done = installation.cli(*words)
    assert (done.code, done.out) == (1, "")
    assert said(done) == "pi-workflows: There is no run nix. List the runs: pi-workflows runs"
    assert installation.cli(*words, "--json").document["code"] == "runMissing"


def test_a_prefix_of_several_runs(installation: Installation) -> None:
    """A prefix that fits several runs lists them; a whole ID is never ambiguous."""
    for run_id in ("many", "many-1", "many-2"):
        installation.start("line", run_id)
    done = installation.cli("show", "man", "--json")
    assert (done.code, done.document["code"]) == (1, "runAmbiguous")
    assert all(run_id in str(done.document["message"]) for run_id in ("many-1", "many-2"))
    for number in range(12):
        installation.start("line", f"many-{number}")
    # Older than as many as are listed, and yet named exactly.
    assert installation.cli("show", "many").code == 0
    assert "many-1" in installation.cli("show", "many-1").out


@pytest.mark.parametrize("command", ["pause", "resume", "cancel"])
def test_a_command_to_a_finished_run(command: str, installation: Installation) -> None:
    """A run that ended takes no commands; the message says how it ended."""
    installation.cli("run", LINE, "--run-id", "over-1")
    done = installation.cli(command, "over-1")
    assert done.code == 1
    assert "over-1" in said(done)
    assert "completed" in said(done)
    assert installation.cli(command, "over-1", "--json").document["code"] == "runTerminal"


def test_answers_that_cannot_be_taken(installation: Installation) -> None:
    """A value that the model refuses leaves the request open; so does another request's ID."""
    assert installation.cli("run", ASKS, "--run-id", "open-1").code == 10
    refused = installation.cli("answer", "open-1", '{"decision":"maybe"}')
    assert refused.code == 1
    assert "decision" in said(refused)
    text = installation.cli("answer", "open-1", '{"decision": ship}')
    assert "VALUE was taken as text, as it is not JSON at line 1, column 14" in said(text)
    other = installation.cli("answer", "open-1", '{"decision":"ship"}', "--request", "r", "--json")
    assert (other.code, other.document["code"]) == (1, "requestChanged")
    assert installation.cli("watch", "open-1").code == 10
    assert installation.cli("answer", "open-1", '{"decision":"ship"}').code == 0
    assert installation.cli("watch", "open-1").code == 0
    late = installation.cli("answer", "open-1", '{"decision":"ship"}', "--json")
    assert (late.code, late.document["code"]) == (1, "runTerminal")


def test_an_unknown_effect(installation: Installation) -> None:
    """An effect that is not there is named."""
    for words in (("resolve", "effect-x", "retry", "--evidence", "looked"), ("show", "effect-x")):
        done = installation.cli("effects", *words)
        assert done.code == 1
        assert "There is no effect effect-x." in said(done)


def test_a_backup_never_overwrites(installation: Installation) -> None:
    """A backup onto something that exists is refused, and what is there stays as it is."""
    there = installation.root / "there.sqlite"
    there.write_text("mine")
    done = installation.cli("state", "backup", str(there))
    assert done.code == 1
    assert str(there) in said(done)
    assert there.read_text() == "mine"


def test_a_database_of_the_wrong_shape(fresh: Installation) -> None:
    """A file that is not ours gets the fixed text and exit code 4; not a byte of it changes."""
    fresh.state.mkdir(mode=0o700)
    database = fresh.state / "state.sqlite"
    database.write_bytes(b"SQLite format 3\0" + bytes(4_080))
    before = database.read_bytes()
    for words in (("runs",), ("server", "start"), ("server", "run")):
        done = fresh.cli(*words)
        assert done.code == 4
        assert said(done) == f"pi-workflows: {FIXED_TEXT}"
    assert database.read_bytes() == before
    assert [path.name for path in fresh.state.iterdir() if "sqlite" in path.name] == [database.name]


def test_a_second_server(installation: Installation) -> None:
    """A server in the foreground is refused beside a live one; the live one goes on."""
    assert installation.cli("server", "start").code == 0
    done = installation.cli("server", "run", "--json")
    assert (done.code, done.document["code"]) == (1, "serverRunning")
    assert installation.cli("server", "status").code == 0


def test_a_state_directory_that_others_may_write(fresh: Installation) -> None:
    """It is refused by name, and left as it is."""
    fresh.state.mkdir()
    fresh.state.chmod(0o777)
    done = fresh.cli("runs")
    assert done.code == 1
    assert str(fresh.state) in said(done)
    assert stat.S_IMODE(fresh.state.stat().st_mode) == 0o777
    assert list(fresh.state.iterdir()) == []


def test_a_state_directory_that_is_a_file(fresh: Installation) -> None:
    """It is refused by name, and stays as it is."""
    fresh.state.write_text("mine")
    done = fresh.cli("runs")
    assert done.code == 1
    assert str(fresh.state) in said(done)
    assert fresh.state.read_text() == "mine"


@pytest.fixture
def small_disk(fresh: Installation) -> Iterator[Installation]:
    """An installation on a disk of four MiB."""
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    fresh.state.mkdir(mode=0o700)
    options = ("-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", str(fresh.state))
    if subprocess.run([mount, *options], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow mounts")
    try:
        yield fresh
    finally:
        fresh.cli("server", "stop", "--now")
        subprocess.run(["umount", str(fresh.state)], check=True)


def test_a_full_disk(small_disk: Installation) -> None:
    """A command that the disk has no room for is refused as such, and works once there is room."""
    assert small_disk.cli("run", LINE, "--run-id", "before-1").code == 0
    filler = small_disk.state / "filler"
    fill(filler)
    done = small_disk.cli("run", LINE, "--run-id", "full-1", "--json")
    assert (done.code, done.document["code"]) == (3, "diskFull")
    filler.unlink()
    assert small_disk.cli("run", LINE, "--run-id", "full-1").code == 0


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4_096)):
                pass
        except OSError:
            return
