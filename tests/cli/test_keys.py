"""A command that is repeated under its key is done once, whoever repeats it."""

from __future__ import annotations

import pytest

from tests.cli.installation import WORKFLOWS, Installation

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
ASKS = str(WORKFLOWS / "asks_workflow.py")


def test_a_start_is_repeated(installation: Installation) -> None:
    """The second start adopts the first: one run, whose ID was drawn from the key."""
    first = installation.cli("run", LINE, "--key", "start-1", "--detach", "--json").document
    again = installation.cli("--key", "start-1", "run", LINE, "--detach", "--json").document
    assert (first["adopted"], again["adopted"]) == (False, True)
    assert first["runId"] == again["runId"]
    other = installation.cli("run", LINE, "--detach", "--json").document
    assert other["runId"] != first["runId"]


def test_a_key_belongs_to_one_request(installation: Installation) -> None:
    """Another input under the same key is a conflict."""
    installation.cli("run", LINE, "--key", "start-2", "--detach")
    words = ("run", LINE, "--key", "start-2", "--input", '{"word":"x"}', "--detach", "--json")
    done = installation.cli(*words)
    assert (done.code, done.document["code"]) == (1, "requestReused")


def test_commands_are_repeated(installation: Installation) -> None:
    """A pause, a cancel and a restart under their keys are adopted."""
    installation.cli("run", ASKS, "--run-id", "again-1")
    for command in ("pause", "cancel", "restart"):
        outcomes = [
            installation.cli(command, "again-1", "--key", f"{command}-1", "--json").document
            for _ in range(2)
        ]
        assert [each["outcome"] for each in outcomes] == ["accepted", "adopted"]
        assert outcomes[0]["receipt"] == outcomes[1]["receipt"]


def test_an_effect_is_settled_once(fresh: Installation) -> None:
    """A resolution that is repeated is adopted, though the effect is settled by then."""
    gate = fresh.gate("gate")
    manual = str(WORKFLOWS / "manual_workflow.py")
    assert fresh.cli("run", manual, "--input", f'{{"gate":"{gate}"}}').code == 12
    words = ("effects", "resolve", "effect-", "reject", "--evidence", "not paid", "--key", "e-1")
    outcomes = [fresh.cli(*words, "--json").document["outcome"] for _ in range(2)]
    assert outcomes == ["accepted", "adopted"]
