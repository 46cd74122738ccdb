"""`explain`, `audit explain` and `audit diff-runs` as people and programs read them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.audit.explaining import Sentence
from pi_workflows.base.canonical import Json
from pi_workflows.cli.paragraph import wrapped
from pi_workflows.cli.story import Fold, folded
from pi_workflows.domain.failure import Failure
from tests.cli.installation import Installation
from tests.cli.terminal import terminal
from tests.kernel.harness import Harness, begin, definition, end, finish
from tests.kernel.workflows import WORKFLOWS
from tests.views.test_story import answered, doubtful

HOSTILE: Final = "\x1b]0;owned\x07\x1b[2J\u202eevil\nline"
ROUNDS: Final = 30
_RING: Final = definition(
    {"one": {}, "two": {}},
    [{"from": "one", "to": "two"}, {"from": "two", "to": "one"}],
    max_steps=1_000,
)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let moments be told in UTC, wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def saved(bench: Harness, into: Installation) -> str:
    """Stop, and leave the file in an installation's project; return its name."""
    bench.store.close()
    shutil.copy(bench.directory / "state.sqlite", into.project / "file.sqlite")
    return "file.sqlite"


def ring(bench: Harness, run_id: str = "run-1", rounds: int = ROUNDS, last: Json = "x") -> None:
    """Go round a loop of two nodes."""
    permit = bench.launch(run_id, _RING)
    for number in range(1, rounds + 1):
        for node in ("one", "two"):
            bench.clock.advance_ms(100)
            output: Json = last if (number, node) == (rounds, "two") else "x"
            start = begin(node, run_id=run_id, visit=number, number=number)
            bench.do(start, permit=permit)
            bench.clock.advance_ms(400)
            done = end(node, output, run_id=run_id, number=number, elapsed_ms=400)
            bench.do(done, permit=permit)


@pytest.fixture
def bench(tmp_path: Path) -> Harness:
    """Drive a new database."""
    return Harness(tmp_path / "state")


def test_a_story_is_told(bench: Harness, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Each sentence has its number and its time; the times stand below; nothing starts a server."""
    answered(bench)
    file = saved(bench, fresh)
    done = fresh.cli("audit", "explain", file, "--run", "run-1")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == snapshot
    assert fresh.cli("explain", "run-", "--file", file).out == done.out
    assert not fresh.state.exists()


def test_a_story_for_programs(
    bench: Harness, fresh: Installation, snapshot: SnapshotAssertion
) -> None:
    """One document has the sentence, the command, and every sentence of the story."""
    doubtful(bench)
    file = saved(bench, fresh)
    document = fresh.cli("audit", "explain", file, "--run", "run-1", "--json").document
    assert document == snapshot


def test_loops_are_folded_for_people_only(bench: Harness, fresh: Installation) -> None:
    """The rounds of a loop are told once, and counted; programs get each of them."""
    ring(bench)
    file = saved(bench, fresh)
    told = fresh.cli("explain", "run-1", "--file", file)
    assert f"… the same 2 again {ROUNDS - 1} times, until " in told.out
    assert len(told.out.splitlines()) < 20
    story = fresh.cli("explain", "run-1", "--file", file, "--json").document["story"]
    assert isinstance(story, dict)
    sentences = story["sentences"]
    assert isinstance(sentences, list)
    assert len(sentences) == 2 * ROUNDS + 2


def sentence(at: int, node: str, outcome: str | None = "ok") -> Sentence:
    """Return a sentence about a node that settled."""
    return Sentence(at, at, at, "host", "attempt.settled", f"{node}.", node, outcome)


@pytest.mark.parametrize(
    ("nodes", "shown"),
    [
        ("", ""),
        ("aaa", "aaa"),
        ("aaaa", "a*3"),
        ("ababababc", "ab*3c"),
        ("xabcabcabcabcy", "xabc*3y"),
        ("aaaabbbb", "a*3b*3"),
        ("aaaaFaaaa", "a*3Fa*3"),
        ("FFFFFF", "FFFFFF"),
        ("abab", "abab"),
    ],
)
def test_what_is_folded(nodes: str, shown: str) -> None:
    """A cycle that comes four times or more is told once; what failed is always told."""
    each = [sentence(at, node, "failed" if node == "F" else "ok") for at, node in enumerate(nodes)]
    found = "".join(
        f"*{told.times}" if isinstance(told, Fold) else str(told.node_id) for told in folded(each)
    )
    assert found == shown


def test_a_fold_ends_when_the_last_round_ended() -> None:
    """The time of a fold is that of the last sentence that it stands for."""
    told = list(folded([sentence(at, "ab"[at % 2]) for at in range(10)]))
    assert told[-1] == Fold(length=2, times=4, until_ms=9)


def test_others_are_not_folded_together() -> None:
    """Answers of different classes of actors are told one by one."""
    each = [replace(sentence(at, "a"), actor=("host", "human")[at % 3 == 0]) for at in range(6)]
    assert [told for told in folded(each) if isinstance(told, Fold)] == []


@pytest.mark.parametrize("columns", [20, 80, 120, 300])
def test_text_fits_its_window(columns: int) -> None:
    """Lines are as wide as the window allows, never wider than a text should be."""
    lines = wrapped("word " * 100, columns, indent=10)
    assert max(map(len, lines)) <= max(40, min(columns, 110) - 10)
    assert " ".join(lines).split() == ["word"] * 100
    assert wrapped("word " * 100, None) == ["word " * 100]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["explain", "audit"])
def test_a_hostile_run_moves_no_terminal(bench: Harness, fresh: Installation, command: str) -> None:
    """Titles, messages and node names from elsewhere are shown as escapes."""
    failure = Failure("nodeFailed", HOSTILE)
    bench.do(replace(bench.start(workflow=definition({"one": {}})), title=HOSTILE))
    permit = bench.relaunch()
    bench.do(begin("one"), permit=permit)
    failed = replace(end("one", outcome="failed"), failure=failure)
    bench.do(failed, replace(finish(outcome="failed"), failure=failure), permit=permit)
    file = saved(bench, fresh)
    words = {
        "explain": ("explain", "run-1", "--file", file),
        "audit": ("audit", "explain", file, "--run", "run-1"),
    }
    with terminal(fresh, *words[command]) as shown:
        shown.until("Where ")
        assert shown.end() == 0
        assert "\x1b]0;" not in shown.raw
        assert "\x1b[2J" not in shown.raw
        assert "\u202e" not in shown.raw
        assert "\\x1b]0;owned" in shown.text


def test_two_runs_side_by_side(
    bench: Harness, fresh: Installation, snapshot: SnapshotAssertion
) -> None:
    """Where they part comes first; each line that differs is marked; a difference exits 1."""
    ring(bench, "run-1", 2)
    ring(bench, "run-2", 2, "y")
    file = saved(bench, fresh)
    done = fresh.cli("audit", "diff-runs", file, "run-1", "run-2")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == snapshot
    assert max(map(len, done.out.splitlines())) <= 80
    document = fresh.cli("audit", "diff-runs", file, "run-1", "run-2", "--json")
    assert document.code == 1
    assert document.document == snapshot(name="document")


def test_two_runs_that_do_not_part(bench: Harness, fresh: Installation) -> None:
    """The same work exits 0."""
    ring(bench, "run-1", 2)
    ring(bench, "run-2", 2)
    file = saved(bench, fresh)
    done = fresh.cli("audit", "diff-runs", file, "run-1", "run-2")
    assert done.code == 0
    assert done.out.startswith("They do not part: 4 steps, the same in both.\n")


def test_two_runs_of_different_workflows(bench: Harness, fresh: Installation) -> None:
    """That they began with something else is said before where they part."""
    ring(bench, "run-1", 1)
    bench.do(replace(bench.start("run-2", WORKFLOWS["gate"]), workflow_name="other"))
    file = saved(bench, fresh)
    done = fresh.cli("audit", "diff-runs", file, "run-1", "run-2")
    assert done.code == 1
    assert done.out.startswith(
        "They began with another workflow and definition; they part at step 1,"
        " which only run-1 took: one ok.\n"
    )


def test_a_run_or_a_file_that_is_not_there(bench: Harness, fresh: Installation) -> None:
    """A missing run exits 1, a missing file 2, and both are named."""
    ring(bench, "run-1", 1)
    file = saved(bench, fresh)
    for words in (
        ("audit", "explain", file, "--run", "run-0"),
        ("explain", "run-0", "--file", file),
        ("audit", "diff-runs", file, "run-1", "run-0"),
    ):
        done = fresh.cli(*words)
        assert (done.code, "run-0" in done.err) == (1, True), words
    done = fresh.cli("audit", "explain", "gone.sqlite", "--run", "run-1")
    assert (done.code, "gone.sqlite" in done.err) == (2, True)


@pytest.mark.slow
def test_a_live_run_is_explained(installation: Installation) -> None:
    """A waiting run says what it asks and how it is answered; the command does help."""
    installation.start("asks", "why-1", '{"question":"Ship?"}')
    assert installation.cli("watch", "why-1").code == 10
    done = installation.cli("explain", "why-")
    assert done.code == 0
    first, second = done.out.splitlines()
    assert first.startswith("ask has waited for an answer (checkpoint) since ")
    assert first.endswith(": Should it be shipped?")
    assert second.split(maxsplit=2)[:2] == ["pi-workflows", "answer"]
    document = installation.cli("explain", "why-1", "--json").document
    assert document["schema"] == "pi-workflows.cli-explain.v1"
    assert (document["code"], document["status"]) == ("waiting", "waiting")
    assert "story" not in document
    assert str(document["sentence"]).startswith("ask has waited for an answer (checkpoint) since ")
    assert installation.cli("answer", "why-1", '{"decision":"ship"}').code == 0
    assert installation.cli("watch", "why-1").code == 0
    assert "It completed at " in installation.cli("explain", "why-1").out
    assert installation.cli("explain", "nobody").code == 1
