"""`search`: matches a line each, how much was searched, and what programs read of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from pi_workflows.cli.commands.runs import Kind
from pi_workflows.protocol.search import SEARCH_KINDS
from tests.cli.archive import ROUNDS, RUNS
from tests.cli.installation import WORKFLOWS, Installation
from tests.cli.stable import stable, stable_text
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")


def members(document: Json, name: str) -> list[dict[str, Json]]:
    """Return the objects of a list in a document."""
    assert isinstance(document, dict)
    found = document[name]
    assert isinstance(found, list)
    listed: list[dict[str, Json]] = []
    for item in found:
        assert isinstance(item, dict)
        listed.append(item)
    return listed


def test_what_is_looked_through_is_what_the_protocol_knows() -> None:
    """The command line offers each kind of the protocol, and no other one."""
    assert tuple(Kind) == SEARCH_KINDS


def test_a_live_run_is_searched(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """The server finds what a run gave; people read lines, programs one document."""
    installation.cli("run", LINE, "--run-id", "found-1")
    done = installation.cli("search", "HELLO", "--run", "found-1")
    assert done.code == 0
    assert stable_text(done.out, installation) == snapshot(name="lines")
    assert done.err == (
        "See the first step: pi-workflows show found-1 --page steps --cursor 0\n"
        "Searched all of 1 run.\n"
    )
    document = installation.cli("search", "HELLO", "--run", "found", "--json").document
    assert stable(document, installation) == snapshot(name="document")


def test_nothing_found_is_exit_code_1(installation: Installation) -> None:
    """As grep: 1 without a match, and 2 when nothing was looked for."""
    installation.cli("run", LINE, "--run-id", "none-1")
    done = installation.cli("search", "nowhere to be found", "--run", "none-1")
    assert (done.code, done.out) == (1, "")
    assert done.err == "Searched all of 1 run.\n"
    missing = installation.cli("search", "x", "--run", "ghost")
    assert (missing.code, missing.out) == (1, "")
    assert "There is no run ghost." in missing.err


@pytest.mark.parametrize(
    "words",
    [(), ("",), ("x" * 161,), ("x", "--kind", "prompts"), ("x", "--limit", "0")],
    ids=["nothing", "empty", "long", "kind", "limit"],
)
def test_wrong_usage_is_exit_code_2(words: tuple[str, ...], fresh: Installation) -> None:
    """What cannot be searched for is refused before a server is started."""
    done = fresh.cli("search", *words)
    assert (done.code, done.out) == (2, "")
    assert not (fresh.state / "host").exists()


def test_all_runs_of_a_file_are_searched(
    file: Path, fresh: Installation, snapshot: SnapshotAssertion
) -> None:
    """Newest first, with the run in each line, and without a server."""
    done = fresh.cli("search", "BROKE", "--file", file.name)
    assert done.code == 0
    assert stable_text(done.out, fresh) == snapshot
    assert f"--page steps --cursor 0 --file {file.name}\n" in done.err
    assert done.err.endswith(f"Searched all of {len(RUNS) + 1} runs.\n")
    assert not fresh.state.exists()


def test_a_search_says_which_runs_it_left_out(file: Path, fresh: Installation) -> None:
    """Only the newest runs are searched, and the rest is named with the way to it."""
    done = fresh.cli("search", "o", "--limit", "2", "--kind", "nodes", "--file", file.name)
    assert {line.split()[0] for line in done.out.splitlines()} <= {"loop-1", "large-1"}
    left = len(RUNS) + 1 - 2
    assert done.err.endswith(
        f"Searched 2 runs; {left} older not:"
        f" pi-workflows search o --kind nodes --limit {left + 2} --file {file.name}.\n"
    )
    found = fresh.cli("search", "o", "--limit", "2", "--file", file.name, "--json").document
    assert (found["complete"], found["totalRuns"]) == (False, left + 2)
    assert [run["runId"] for run in members(found, "runs")] == ["loop-1", "large-1"]


def test_a_long_run_is_searched_to_its_end(file: Path, fresh: Installation) -> None:
    """Every page of a run is read: each step that holds the text is a match."""
    words = ("search", "AGAIN", "--run", "loop-1", "--file", file.name, "--json")
    document = fresh.cli(*words).document
    (run,) = members(document, "runs")
    assert run["searchedSteps"] == run["totalSteps"]
    assert run["complete"] is True
    assert run["totalSteps"] == ROUNDS + 1
    assert [item["stepIndex"] for item in members(document, "items")] == list(range(ROUNDS))


def test_a_value_that_is_too_large_is_told(installation: Installation) -> None:
    """A search that looked through the beginning of a value only is not complete, and says so."""
    installation.start("large", "large-1", '{"lines":40000}')
    installation.cli("watch", "large-1")
    installation.cli("answer", "large-1", "true")
    installation.cli("watch", "large-1")
    done = installation.cli("search", "nowhere", "--run", "large-1")
    assert (done.code, done.out) == (1, "")
    first, last = done.err.splitlines()
    assert first == "Of 1 value only the first 256 KiB were searched."
    assert last == "Searched 1 run."
    found = installation.cli("search", "Line 39999", "--run", "large-1", "--json")
    assert (found.code, found.document["complete"]) == (1, False)


def test_an_excerpt_cannot_write_on_the_terminal(file: Path, fresh: Installation) -> None:
    """What a run gave is shown, whatever it would do to a terminal."""
    done = fresh.cli("search", "owned", "--run", "say-1", "--file", file.name)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if "owned" not in line] == []
    assert not set("\x1b\x07\x9b\u202e").intersection(done.out)


def test_the_match_is_bold_and_in_the_window(file: Path, fresh: Installation) -> None:
    """On a terminal the match stands out, and a narrow window still shows it."""
    words = ("search", "BROKE", "--kind", "errors", "--file", file.name)
    with terminal(fresh, *words, columns=60) as shown:
        assert shown.end() == 0
    assert shown.raw.count("\x1b[1mbroke\x1b[0m") == 4
    matches = [line for line in shown.text.splitlines() if "broke" in line]
    assert len(matches) == 4
    assert all(len(line) <= 60 for line in matches)
