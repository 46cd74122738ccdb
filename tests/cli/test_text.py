"""The same commands for people, in a pipe: plain lines, nothing cut, nothing coloured."""

from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.installation import WORKFLOWS, Done, Installation
from tests.cli.stable import stable_text

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
ASKS = str(WORKFLOWS / "asks_workflow.py")
FAILS = str(WORKFLOWS / "fails_workflow.py")
GAP = re.compile(r"(?<=\S) {2,}")
AGE = re.compile(r"\b(now|\d+ (s|min|h|d))\b")


def seen(done: Done, installation: Installation) -> dict[str, object]:
    """Return everything that a command wrote, with what differs from run to run taken out."""
    out, err = (AGE.sub("<age>", stable_text(text, installation)) for text in (done.out, done.err))
    # How wide a column is depends on the paths and the ages in it.
    lines = [GAP.sub("  ", line) for line in out.splitlines()]
    return {"code": done.code, "out": lines, "err": err.splitlines()}


def test_run(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """What happens goes to standard error, the Markdown of the result to standard output."""
    done = installation.cli("run", LINE, "--run-id", "text-1")
    assert seen(done, installation) == snapshot
    assert done.out == "# Words\n\n- hello\n"


def test_run_detached(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """Only the run's ID is the result: a script takes it."""
    done = installation.cli("run", LINE, "--run-id", "text-2", "--detach")
    assert done.out == "text-2\n"
    assert seen(done, installation) == snapshot


def test_run_that_exists(installation: Installation) -> None:
    """The same run again is not told as a new one: neither that it started nor what it did."""
    first = installation.cli("run", LINE, "--run-id", "twice-1")
    again = installation.cli("run", LINE, "--run-id", "twice-1")
    assert (again.code, again.out) == (0, first.out)
    said = again.err.splitlines()
    assert re.fullmatch(r"twice-1 already exists \(completed .*\); nothing was started\.", said[0])
    assert not any("started (" in line for line in said)
    detached = installation.cli("run", LINE, "--run-id", "twice-1", "--detach")
    assert (detached.out, detached.err.splitlines()[0]) == ("twice-1\n", said[0])


def test_run_that_asks(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """The question and how to answer it."""
    assert seen(installation.cli("run", ASKS, "--run-id", "text-3"), installation) == snapshot


def test_run_that_fails(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """The reason with the file and line of the author's code; nothing on standard output."""
    assert seen(installation.cli("run", FAILS, "--run-id", "text-4"), installation) == snapshot


def test_show(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """A run that completed, one that asks and one that failed."""
    for name, workflow in (("line", LINE), ("asks", ASKS), ("fails", FAILS)):
        installation.cli("run", workflow, "--run-id", f"show-{name}")
        shown = seen(installation.cli("show", f"show-{name}"), installation)
        assert shown == snapshot(name=name)


def test_list_of_runs(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """A row each, the newest first, and how to see the rest."""
    assert seen(fresh.cli("runs"), fresh) == snapshot(name="none")
    for name, workflow in (("line", LINE), ("asks", ASKS), ("fails", FAILS)):
        fresh.cli("run", workflow, "--run-id", f"list-{name}")
    assert seen(fresh.cli("runs", "--limit", "2"), fresh) == snapshot(name="two")
    rest = fresh.cli("runs", "--cursor", "2")
    assert [line.split()[2] for line in rest.out.splitlines()[1:]] == ["list-line"]
    waiting = fresh.cli("runs", "--status", "waiting", "--project", ".")
    assert [line.split()[2] for line in waiting.out.splitlines()[1:]] == ["list-asks"]
    elsewhere = fresh.cli("runs", "--project", "..")
    assert (elsewhere.out, elsewhere.err) == ("", "No runs.\n")


def test_following_the_list(fresh: Installation) -> None:
    """The list is written again when it changes, until time is up; one last line says so."""
    fresh.cli("run", LINE, "--run-id", "follow-1")
    done = fresh.cli("runs", "--follow", "--deadline", "0.2", "--json")
    *pages, end = done.documents
    assert (done.code, end["outcome"], end["final"]) == (8, "deadline", True)
    assert [page["total"] for page in pages] == [1]


def test_watch_and_events(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """One line for each event, with its time, run, number, type and node."""
    installation.cli("run", LINE, "--run-id", "text-5")
    assert seen(installation.cli("events", "text-5"), installation) == snapshot(name="events")
    assert seen(installation.cli("watch", "text-5"), installation) == snapshot(name="watch")


def test_view(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """The graph as it stands; without `--once` again after each change, up to the end."""
    installation.cli("run", LINE, "--run-id", "text-6")
    once = seen(installation.cli("view", "text-6", "--once"), installation)
    assert once == snapshot
    assert seen(installation.cli("view", "text-6"), installation)["code"] == 0


def test_control(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """Each command says what became of the run."""
    installation.cli("run", ASKS, "--run-id", "text-7")
    words = [
        ("pause", "text-7"),
        ("pause", "text-7"),
        ("resume", "text-7"),
        ("resume", "text-7"),
        ("answer", "text-7", '{"decision":"ship"}'),
        ("watch", "text-7", "--from", "11"),
        ("restart", "text-7"),
    ]
    said = [seen(installation.cli(*each), installation) for each in words]
    assert said == snapshot


def test_effects(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """What is unsettled, how to settle it, and what became of it."""
    assert fresh.cli("effects").err == "No unsettled effects.\n"
    gate = fresh.gate("gate")
    manual = str(WORKFLOWS / "manual_workflow.py")
    run = fresh.cli("run", manual, "--input", f'{{"gate":"{gate}"}}', "--run-id", "text-8")
    assert seen(run, fresh) == snapshot(name="run")
    assert seen(fresh.cli("effects"), fresh) == snapshot(name="list")
    resolve = ("effects", "resolve", "effect-", "confirm", "--evidence", "it is paid")
    assert seen(fresh.cli(*resolve), fresh) == snapshot(name="resolve")
    assert fresh.cli("watch", "text-8").code == 0


def test_workflows_and_check(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """What can be run by name, and a file's graph or mistakes."""
    assert seen(fresh.cli("workflows"), fresh) == snapshot(name="none")
    found = fresh.project / ".pi" / "workflows"
    found.mkdir(parents=True)
    (found / "line_workflow.py").write_bytes((WORKFLOWS / "line_workflow.py").read_bytes())
    assert seen(fresh.cli("workflows"), fresh) == snapshot(name="one")
    assert seen(fresh.cli("check", "line"), fresh) == snapshot(name="sound")
    mistaken = str(WORKFLOWS / "mistaken_workflow.py")
    assert seen(fresh.cli("check", mistaken), fresh) == snapshot(name="faulty")


def test_state(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """How much is stored, whether it is sound, and a copy."""
    fresh.cli("run", LINE, "--run-id", "text-9")
    status = fresh.cli("state", "status").out
    assert [line.split("  ")[0] for line in status.splitlines()] == snapshot(name="status")
    assert fresh.cli("state", "verify").out.startswith("Sound: ")
    backup = fresh.cli("state", "backup", "copy.sqlite").out
    assert backup.startswith(f"{fresh.project}/copy.sqlite: ")


def test_server(fresh: Installation) -> None:
    """Each command says in one line what there is now."""
    assert fresh.cli("server", "stop").out == "No server is running.\n"
    assert fresh.cli("server", "start").out.startswith("Started. Process ")
    assert fresh.cli("server", "start").out.startswith("A server is running already. Process ")
    status = fresh.cli("server", "status", "--calibrate").out
    labels = [line.split()[0] for line in status.splitlines()]
    assert labels == ["server", "up", "runners", "runs", "disk", "log", "trouble"]
    fresh.cli("run", LINE, "--run-id", "text-10")
    assert "commits " in fresh.cli("server", "status").out
    fresh.cli("run", ASKS, "--run-id", "text-11")
    runs = "0 queued, 0 running, 1 standing still (1 for an answer)"
    assert runs in fresh.cli("server", "status").out
    assert fresh.cli("server", "stop").out.startswith("Stopped. Process ")


def test_what_is_larger_than_a_view(installation: Installation) -> None:
    """A question and an output that the view only refers to are fetched and shown in full."""
    large = str(WORKFLOWS / "large_workflow.py")
    assert installation.cli("run", large, "--run-id", "large-1").code == 10
    question = installation.cli("show", "large-1").out
    assert "  Is that all?\n    - item 0\n" in question
    assert "more lines" in question
    assert installation.cli("answer", "large-1", "yes").code == 0
    assert installation.cli("watch", "large-1").code == 0
    shown = installation.cli("show", "large-1").out
    assert "- line 0\n" in shown
    assert "- line 19999\n" in shown
