"""The session view: what a Pi session works on now, small whatever its run is like."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    SESSION_DETAIL_BYTES_MAX,
    SESSION_NODES_BEFORE,
    SESSION_NODES_MAX,
    SESSION_TEXT_BYTES_MAX,
    SESSION_UPDATES_MAX,
)
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun
from pi_workflows.store.records import Permit
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.session_view import Coordination, session_of_run, session_work
from tests.kernel.harness import Harness, ask, begin, definition, end, finish
from tests.views.reading import Document, at, decoded, items, line, view

SESSION = "session-1"
# By name the nodes stand in another order than a run reaches them.
SHIP = definition(
    {
        "start": {"statusDetail": "Looking around"},
        "check": {"retry": {"maxAttempts": 2, "on": ["failed"], "delayMs": 0, "backoff": 1.0}},
        "gate": {"type": "checkpoint", "timeoutMs": 0, "summary": "Ship it?"},
        "act": {
            "type": "action",
            "actionForm": "shell",
            "effect": {"type": "deploy", "recovery": "manual"},
        },
    },
    line(("start", "check", "gate", "act")),
    start="start",
)


def launch(bench: Harness, workflow: Blob = SHIP, run_id: str = "run-1") -> Permit:
    """Start a run that reserves the session, and let its runner be ready."""
    bench.do(bench.start(run_id, workflow, session=SESSION))
    return bench.relaunch(run_id)


def work(
    bench: Harness, *, live: bool = False, cursor: int | None = None, session: str = SESSION
) -> Document:
    """Return the view of the session to somebody who coordinates nothing."""
    process = ProcessFacts(bench.clock.now_ms(), {"run-1"} if live else frozenset())
    with bench.store.snapshot() as read:
        found = session_work(read, session, process, cursor)
        return decoded(canonical.encode(found.document(Coordination())))


def row(document: Document, node: str) -> Document:
    """Return the row about a node."""
    return next(each for each in items(document, "run", "nodes") if each["nodeId"] == node)


def to_gate(bench: Harness) -> Permit:
    """Bring a run before its gate, with a second try on the way."""
    permit = launch(bench)
    bench.do(begin("start"), permit=permit)
    bench.clock.advance_ms(30)
    bench.do(end("start", {"a": 1}), begin("check"), permit=permit)
    bench.clock.advance_ms(5)
    bench.do(
        end("check", outcome="failed"),
        begin("check", number=2),
        permit=permit,
    )
    return permit


def to_question(bench: Harness) -> Permit:
    """Bring a run to its question."""
    permit = to_gate(bench)
    bench.do(end("check", number=2), begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate"), permit=permit)
    return permit


def test_a_session_without_work(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """A session that never had a run, or whose run is not its own, works on nothing."""
    bench.do(bench.start("run-1"), bench.start("run-2", session="session-2"))
    assert work(bench) == snapshot
    with bench.store.snapshot() as read:
        runs = ("run-1", "run-2", "unknown")
        assert [session_of_run(read, run_id) for run_id in runs] == [None, "session-2", None]


def test_a_run_that_waits_for_a_runner(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """Before anything happened every node is pending, in the order in which it is reached."""
    bench.do(bench.start("run-1", SHIP, session=SESSION))
    assert work(bench) == snapshot


def test_a_node_at_work(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """The working node has its start, a tried one its last failure, progress stands by its key."""
    permit = to_gate(bench)
    attempt = begin("check", number=2).attempt_id
    bench.do(
        RecordUpdate("run-1", attempt, "progress", "files", Blob.json({"done": 3})),
        permit=permit,
    )
    assert work(bench, live=True) == snapshot


def test_a_node_says_what_it_does(bench: Harness) -> None:
    """What the author wrote for people stands at the node while it works, and not afterwards."""
    permit = launch(bench)
    bench.do(begin("start"), permit=permit)
    assert row(work(bench), "start")["statusDetail"] == "Looking around"
    bench.do(end("start"), begin("check"), permit=permit)
    assert row(work(bench), "start")["statusDetail"] is None


def test_a_question(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """A waiting run has its question, and the node says what is asked."""
    to_question(bench)
    assert work(bench) == snapshot


def test_a_paused_run(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """A pause leaves its node to be tried again; nobody works on it."""
    to_gate(bench)
    bench.do(PauseRun("run-1"))
    document = work(bench)
    assert at(document, "run", "currentNode") is None
    assert row(document, "check")["state"] == "pending"
    assert document == snapshot


def test_a_run_that_stands_still(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """A parked run shows the stored error and that somebody has to look."""
    bench.do(bench.start("run-1", SHIP, session=SESSION))
    failure = Failure("importError", "no module named x")
    bench.do(FailLaunch("run-1", failure), permit=bench.claim())
    document = work(bench)
    assert at(document, "run", "possiblyInterrupted") is True
    assert document == snapshot


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_a_run_that_ended_is_no_work(bench: Harness, outcome: str) -> None:
    """The end of a run frees its session, and the next one is its work."""
    permit = launch(bench, definition({"only": {}}))
    if outcome == "cancelled":
        bench.do(CancelRun("run-1"))
    else:
        bench.do(begin("only"), permit=permit)
        ended = "ok" if outcome == "completed" else "failed"
        bench.do(end("only", outcome=ended), finish(outcome=outcome), permit=permit)
    assert (work(bench)["run"], work(bench)["interaction"]) == (None, None)
    bench.do(bench.start("run-2", SHIP, session=SESSION))
    assert at(work(bench), "run", "runId") == "run-2"


def test_an_accepted_answer_is_no_question(bench: Harness) -> None:
    """Once answered nothing is asked any more; its node works on."""
    to_question(bench)
    question = at(work(bench), "interaction", "requestId")
    revision = at(work(bench), "interaction", "revision")
    assert isinstance(revision, int)
    bench.do(AnswerCheckpoint("run-1", str(question), revision, "s", "key", Blob.json("yes")))
    document = work(bench)
    assert document["interaction"] is None
    assert (at(document, "run", "currentNode"), at(document, "run", "waitingOn")) == ("gate", None)
    assert row(document, "gate")["state"] == "running"
    assert at(document, "run", "display", "status") == "queued"


def test_it_says_what_the_run_view_says(bench: Harness) -> None:
    """Status, revisions and queue are those of the run view, whatever state the run is in."""

    def agree() -> None:
        session, run = work(bench), view(bench)
        for member in ("revision", "runRevision", "queue", "live", "possiblyInterrupted"):
            assert at(session, "run", member) == run[member]
        for member in ("status", "activity", "controls", "reason"):
            assert at(session, "run", "display", member) == at(run, "display", member)
        state = cast("Document", run["state"])
        assert at(session, "run", "currentNode") == state.get("currentNode")
        assert at(session, "run", "waitingOn") == state.get("waitingOn")
        assert session["interaction"] == state.get("interaction")

    to_gate(bench)
    agree()
    bench.do(PauseRun("run-1"))
    agree()
    bench.do(bench.start("run-2", SHIP, session="session-2"))
    agree()


def test_a_lost_runner_is_not_a_failed_node(bench: Harness) -> None:
    """An attempt whose runner was lost is pending, and the window stays with it."""
    permit = to_gate(bench)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="exit 1"), permit=permit)
    document = work(bench)
    assert row(document, "check") == {
        **row(document, "check"),
        "state": "pending",
        "attempts": 2,
        "outcome": "failed",
        "startedAt": None,
    }


# --- bounds --------------------------------------------------------------------------------------


def wide(bench: Harness, count: int, settled: int) -> Permit:
    """Bring a line of nodes to the one after so many settled ones."""
    names = [f"n{number:03}" for number in range(count)]
    permit = launch(bench, definition({name: {} for name in names}, line(names), max_steps=1_000))
    bench.do(begin(names[0]), permit=permit)
    for here, following in pairwise(names[: settled + 1]):
        bench.do(end(here), begin(following), permit=permit)
    return permit


def window(document: Document) -> tuple[Json, Json, int, Json]:
    """Return the start, the total, the number of rows and the first of them."""
    rows = items(document, "run", "nodes")
    start, total = at(document, "run", "nodeStart"), at(document, "run", "nodeTotal")
    return start, total, len(rows), rows[0]["nodeId"]


@pytest.mark.parametrize(
    ("settled", "start", "rows"), [(0, 0, 16), (4, 0, 16), (5, 1, 16), (20, 16, 14), (29, 25, 5)]
)
def test_the_window_follows_the_working_node(
    bench: Harness, settled: int, start: int, rows: int
) -> None:
    """It begins four rows before the working node and ends with the run's last node."""
    wide(bench, 30, settled)
    assert window(work(bench)) == (start, 30, rows, f"n{start:03}")
    assert start == max(0, settled - SESSION_NODES_BEFORE)
    assert rows == min(SESSION_NODES_MAX, 30 - start)


@pytest.mark.parametrize(("cursor", "start"), [(0, 0), (7, 7), (29, 29), (30, 29), (9_999, 29)])
def test_a_window_may_stand_elsewhere(bench: Harness, cursor: int, start: int) -> None:
    """A cursor is the first row, held inside the run."""
    wide(bench, 30, 20)
    assert window(work(bench, cursor=cursor))[0] == start


def test_the_window_stays_where_the_run_stopped(bench: Harness) -> None:
    """Between two attempts the last one that was worked on is followed."""
    permit = wide(bench, 30, 20)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="exit 1"), permit=permit)
    assert window(work(bench))[0] == 16


@pytest.mark.parametrize("text", ["x", "é", "\n", "\U0001f600"])
def test_texts_are_clipped_where_they_stand_in_the_frame(bench: Harness, text: str) -> None:
    """However a text is encoded it takes 4 KiB at most, and its cut is marked."""
    bench.do(bench.start("run-1", SHIP, session=SESSION))
    failure = Failure("importError", text * 5_000)
    bench.do(FailLaunch("run-1", failure), permit=bench.claim())
    document = work(bench)
    for told in (at(document, "run", "error"), at(document, "run", "display", "reason")):
        assert isinstance(told, str)
        size_bytes = len(canonical.encode(told))
        most = len(canonical.encode(text)) - 2
        assert SESSION_TEXT_BYTES_MAX - most < size_bytes <= SESSION_TEXT_BYTES_MAX
        assert told.rstrip("…") == text * (len(told) - 1)


def test_progress_is_the_newest_sixteen_keys(bench: Harness) -> None:
    """Each key is there once, the newest sixteen in the order of publication."""
    permit = launch(bench)
    bench.do(begin("start"), permit=permit)
    attempt = begin("start").attempt_id
    keys = [f"key-{number:02}" for number in range(30)]
    for key in (*keys, keys[3]):
        bench.do(RecordUpdate("run-1", attempt, "progress", key, Blob.json(1)), permit=permit)
    listed = [each["key"] for each in items(work(bench), "run", "progressUpdates")]
    assert listed == [*keys[-SESSION_UPDATES_MAX + 1 :], keys[3]]


def test_large_details_are_references(bench: Harness) -> None:
    """A question's contract or a value of progress over 8 KiB is named, not held."""
    permit = to_gate(bench)
    attempt = begin("check", number=2).attempt_id
    value = Blob.json("x" * SESSION_DETAIL_BYTES_MAX)
    bench.do(RecordUpdate("run-1", attempt, "progress", "all", value), permit=permit)
    bench.do(end("check", number=2), begin("gate", node_type="checkpoint"), permit=permit)
    gate = begin("gate").attempt_id
    bench.do(WaitForInput("run-1", gate, "checkpoint", value), permit=permit)
    document = work(bench)
    for shown in (
        at(document, "run", "progressUpdates", 0, "data"),
        at(document, "interaction", "contract"),
    ):
        assert at(shown, "$artifact", "sha256") == value.hex
