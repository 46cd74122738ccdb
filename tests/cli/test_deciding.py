"""A person decides at a terminal, and nobody else does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from pi_workflows.server.operator_key import create_key, read_key
from tests.cli.installation import PROGRAM, WORKFLOWS, Done, Installation
from tests.cli.terminal import Terminal, terminal

pytestmark = pytest.mark.slow
DECIDES: Final = str(WORKFLOWS / "decides_workflow.py")
PASSPHRASE: Final = "correct horse"  # noqa: S105 - of nobody
ASKED: Final = "Passphrase of the operator: "


@pytest.fixture
def operator(installation: Installation) -> Installation:
    """An installation with a passphrase."""
    installation.state.mkdir(mode=0o700, exist_ok=True)
    file = installation.state / "operator.json"
    if not file.exists():
        create_key(file, PASSPHRASE)
    return installation


def prove(shown: Terminal, passphrase: str = PASSPHRASE) -> None:
    """Type the passphrase."""
    shown.until(ASKED)
    shown.type(passphrase)


def without_terminal(installation: Installation, *arguments: str) -> Done:
    """Run a command in a session that has no terminal, whoever runs the tests."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=installation.variables,
        cwd=installation.project,
        capture_output=True,
        input=f"{PASSPHRASE}\n".encode() * 3,
        start_new_session=True,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def waiting(installation: Installation, run_id: str) -> None:
    """Start a run, up to where it asks."""
    done = installation.cli("run", DECIDES, "--run-id", run_id)
    assert done.code == 10, done.err
    assert "Release v1?" in done.err
    assert f"Answer it: pi-workflows answer {run_id} go" in done.err


def test_the_passphrase_is_set_at_the_terminal_twice(fresh: Installation) -> None:
    """It is never shown; what differs is refused; once there is one, only it leads to another."""
    file = fresh.state / "operator.json"
    with terminal(fresh, "operator", "init") as shown:
        shown.until("New passphrase: ")
        shown.type(PASSPHRASE)
        shown.until("The same again: ")
        shown.type("something else")
        assert shown.end() == 2
    assert not file.exists()
    with terminal(fresh, "operator", "init") as shown:
        for prompt in ("New passphrase: ", "The same again: "):
            shown.until(prompt)
            shown.type(PASSPHRASE)
        assert shown.end() == 0
    key = read_key(file)
    assert key is not None
    assert f"The operator's key is {key.key_id}." in shown.text
    assert PASSPHRASE not in shown.text
    with terminal(fresh, "operator", "init") as shown:
        assert shown.end() == 1
    assert "There is an operator already" in shown.text
    with terminal(fresh, "--json", "operator", "init", "--change") as shown:
        prove(shown)
        for prompt in ("New passphrase: ", "The same again: "):
            shown.until(prompt)
            shown.type("another one")
        assert shown.end() == 0
    changed = read_key(file)
    assert changed is not None
    assert changed.key_id != key.key_id
    assert f'"keyId":"{changed.key_id}"' in shown.text


def test_without_a_terminal_nobody_is_a_person(operator: Installation) -> None:
    """A script that knows the passphrase cannot give it: no stream, no argument takes it."""
    waiting(operator, "decides-1")
    for arguments in (("answer", "decides-1", "go"), ("operator", "init")):
        done = without_terminal(operator, "--json", *arguments)
        assert done.code == 1
        assert json.loads(done.out)["code"] == "operatorMissing"
    assert operator.cli("show", "decides-1", "--json").document["display"] == {
        "activity": None,
        "controls": ["pause", "cancel", "human-answer"],
        "reason": "Waiting for a person's decision.",
        "status": "waiting",
    }


def test_a_decision_is_shown_proved_and_sent(operator: Installation) -> None:
    """All of it is on the terminal; a wrong passphrase is asked for again; the text comes along."""
    waiting(operator, "decides-2")
    with terminal(operator, "answer", "decides-2", "replan", "--input", "smaller") as shown:
        prove(shown, "a wrong one")
        prove(shown)
        assert shown.end() == 0
    text = shown.text
    for line in ("Release v1?", "The tag v1 is pushed.", "- one", "stop: Leave it"):
        assert line in text
    assert "You decide: Plan again\n  smaller\n" in text
    assert PASSPHRASE not in text
    assert "That is not the operator's passphrase." in text
    assert operator.cli("watch", "decides-2").code == 10


def test_what_is_no_choice_is_not_sent(operator: Installation) -> None:
    """It is wrong usage, and names the choices; no passphrase is asked for."""
    waiting(operator, "decides-4")
    with terminal(operator, "answer", "decides-4", "replan") as shown:
        assert shown.end() == 2
    told = "input: replan needs how and nothing else. The choices are go, stop, replan."
    assert told in shown.text
    assert ASKED not in shown.text


def test_a_run_asks_for_the_decision_and_again_when_it_changed(
    operator: Installation, tmp_path: Path
) -> None:
    """What changes behind an approval is never done: the person sees the new action first."""
    drift = tmp_path / "drift"
    given = json.dumps({"drift": str(drift)})
    with terminal(operator, "run", DECIDES, "--run-id", "decides-3", "--input", given) as shown:
        shown.until("Release v1?")
        shown.until("choice> ")
        shown.type("perhaps")
        shown.until("Not accepted: ")
        shown.until("choice> ")
        drift.touch()
        shown.type("go")
        shown.until("You decide: Release it")
        prove(shown)
        shown.until("Release v1-hotfix?")
        shown.until("choice> ")
        shown.type("go")
        prove(shown)
        assert shown.end() == 0
    assert "released: v1-hotfix" in shown.text
    taken = operator.cli("show", "decides-3", "--json").document["takenTransitions"]
    assert isinstance(taken, list)
    assert sorted(map(str, taken)) == ["approve->release", "plan->approve", "release->approve"]
