"""A command line that is wrong ends with exit code 2 and one line, before anything is sent."""

from __future__ import annotations

import pytest

from tests.cli.installation import WORKFLOWS, Done, Installation

LINE = str(WORKFLOWS / "line_workflow.py")
WRONG = {
    "no command": ((), "Missing command."),
    "unknown command": (("rnus",), "No such command 'rnus'. Did you mean"),
    "unknown option": (("runs", "--stauts", "x"), "No such option: --stauts"),
    "unknown option before": (("--verbose", "runs"), "No such option: --verbose"),
    "missing argument": (("show",), "Missing argument 'RUN'."),
    "missing option": (("effects", "resolve", "e", "retry"), "Missing option '--evidence'."),
    "too many arguments": (("show", "a", "b"), "unexpected extra argument"),
    "value out of range": (("runs", "--limit", "0"), "Invalid value for '--limit'"),
    "no number": (("watch", "a", "--deadline", "soon"), "Invalid value for '--deadline'"),
    "an endless deadline": (("view", "a", "--deadline", "inf"), "Invalid value for '--deadline'"),
    "no such deadline": (("run", LINE, "--deadline", "nan"), "Invalid value for '--deadline'"),
    "a deadline no clock has": (("runs", "--deadline", "1e15"), "Invalid value for '--deadline'"),
    "an endless grace": (("server", "stop", "--grace", "inf"), "Invalid value for '--grace'"),
    "unknown choice": (("runs", "--status", "done"), "'--status': 'done' is not one of"),
    "unknown action": (("effects", "resolve", "e", "undo", "--evidence", "x"), "'undo' is not"),
    "group without a command": (("state",), "Missing command."),
    "input that is no JSON": (("run", LINE, "--input", "{word}"), "--input: the value is not"),
    "input with a key twice": (("run", LINE, "--input", '{"a":1,"a":2}'), "--input: the value"),
    "input file that is missing": (("run", LINE, "--input", "@nix.json"), "nix.json cannot be"),
    "run ID that is none": (("run", LINE, "--run-id", "a b"), "--run-id: use letters, digits"),
    "project that is missing": (("run", LINE, "--project", "nix"), "--project: there is no"),
    "answer without a value": (("answer", "a"), "Missing argument 'VALUE'."),
    "a run that can never be": (("watch", "a b", "--wait-for"), "--wait-for: a b is no run ID"),
    "quick without a file": (("state", "verify", "--quick"), "--quick is for a FILE"),
    "file that is missing": (("state", "verify", "nix.sqlite"), "no such file: nix.sqlite"),
    "rebuild of nothing": (("audit", "rebuild", "nix.sqlite"), "no such file: nix.sqlite"),
    "sequence no number has": (("watch", "a", "--from", str(2**53)), "Invalid value for '--from'"),
    "no file to verify": (("state", "verify", ""), "FILE is empty"),
    "no file to copy to": (("state", "backup", ""), "FILE is empty"),
    "no file to look into": (("audit", "log", ""), "FILE is empty"),
    "no file to show from": (("show", "a", "--file", ""), "FILE is empty"),
    "no file to write": (("audit", "rebuild", "a", "--to", ""), "NEW is empty"),
    "no project": (("runs", "--project", ""), "DIR is empty"),
    "target that is empty": (("check", ""), "TARGET: name a workflow"),
    "argument that is no text": (("show", "a\udcff"), r"This argument is not UTF-8: a\udcff"),
    "grace and now": (("server", "stop", "--now", "--grace", "3"), "--now waits for nothing"),
}


def is_untouched(fresh: Installation) -> bool:
    """Whether no server was started and nothing was written."""
    return not fresh.state.exists()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage(name: str, fresh: Installation) -> None:
    """Each mistake has one line that says what is wrong, and exit code 2; nothing was started."""
    arguments, said = WRONG[name]
    done = fresh.cli(*arguments)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("pi-workflows: ")
    assert said in line
    assert is_untouched(fresh)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage_for_programs(name: str, fresh: Installation) -> None:
    """With `--json` the same is one document on standard output, and nothing else anywhere."""
    arguments, said = WRONG[name]
    done = fresh.cli("--json", *arguments)
    document = done.document
    assert (done.code, done.err) == (2, "")
    assert document["schema"] == "pi-workflows.cli-error.v1"
    assert document["exitCode"] == 2
    assert said in str(document["message"])
    assert str(document["code"])[0].islower()


def test_a_relative_state_directory_is_wrong_usage(fresh: Installation) -> None:
    """`PI_WORKFLOWS_STATE_DIR` must be absolute; the error names the variable."""
    fresh.environment["PI_WORKFLOWS_STATE_DIR"] = "state"
    done = fresh.cli("runs")
    assert done.code == 2
    assert "PI_WORKFLOWS_STATE_DIR" in done.err


def test_an_empty_state_directory_is_wrong_usage(fresh: Installation) -> None:
    """An empty variable is a mistake of a script; it never means the person's own state."""
    fresh.environment["PI_WORKFLOWS_STATE_DIR"] = ""
    done = fresh.cli("runs", "--json")
    assert (done.code, done.document["code"]) == (2, "stateDirEmpty")


def test_a_socket_path_that_is_too_long_is_wrong_usage(fresh: Installation) -> None:
    """A state directory in which no socket can stand is refused before anything is made."""
    fresh.environment["PI_WORKFLOWS_STATE_DIR"] = f"/{'d' * 100}"
    done = fresh.cli("runs", "--json")
    assert (done.code, done.document["code"]) == (2, "socketPathTooLong")
    assert "107" in str(done.document["message"])


def said_json(done: Done) -> bool:
    """Whether a failure came as a document."""
    return done.err == "" and done.document["schema"] == "pi-workflows.cli-error.v1"


def test_global_options_stand_before_or_behind(fresh: Installation) -> None:
    """`--json` means the same before the program's command, before a group's, and at the end."""
    lines = (
        ("--json", "state", "verify", "nix"),
        ("state", "--json", "verify", "nix"),
        ("state", "verify", "nix", "--json"),
    )
    assert all(said_json(fresh.cli(*line)) for line in lines)
