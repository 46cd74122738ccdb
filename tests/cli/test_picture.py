"""The picture of a run: every status by symbol and word, the graph in a reader's order."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from pi_workflows.cli.output import plain
from pi_workflows.cli.picture import Scene, picture
from pi_workflows.cli.run_view import RunView
from tests.cli.views import START_MS, run_view, step

LINE: list[Json] = [{"from": "one", "to": "two"}]
STATUSES = (
    "queued",
    "running",
    "waiting",
    "paused",
    "ambiguous",
    "completed",
    "failed",
    "timed_out",
    "cancelled",
)


NOW = Scene(now_ms=START_MS + 65_000)


def drawn(view: RunView, scene: Scene = NOW) -> list[str]:
    """Return a picture as plain lines."""
    return [plain(line) for line in picture(view, scene)]


@pytest.mark.parametrize("status", STATUSES)
def test_every_status(status: str, snapshot: SnapshotAssertion) -> None:
    """Each status has a symbol and a word, with Unicode and without, and its reason."""
    view = run_view(
        {"one": {}, "two": {}}, LINE, status=status, reason="Why.", state={"currentNode": "two"}
    )
    assert [*drawn(view), *drawn(view, replace(NOW, has_unicode=False))] == snapshot


def test_a_run_in_full(snapshot: SnapshotAssertion) -> None:
    """Attempts, ways taken, errors, the node that works with its progress, what comes later."""
    nodes: dict[str, dict[str, Json]] = {
        "fetch": {"type": "action", "actionForm": "shell"},
        "check": {},
        "mend": {},
        "copy": {},
        "end": {},
    }
    edges: list[Json] = [
        {"from": "fetch", "to": "check"},
        {"from": "check", "on": "$.ok", "cases": {"no": "mend", "yes": "copy"}},
        {"from": "mend", "to": "check"},
        {"from": "copy", "to": "end"},
    ]
    view = run_view(
        nodes,
        edges,
        graphSteps=[
            step("fetch", "failed", number=3),
            step("check", "ok", start=4_000, number=2, visit=2),
            step("mend", "ok", start=2_000),
        ],
        takenTransitions=["check->copy", "check->mend", "fetch->check", "mend->check"],
        state={
            "title": "Nightly \x1b[31mcopy",
            "currentNode": "copy",
            "currentAttemptId": "attempt-copy-1",
            "statusDetail": "copying",
            "results": {
                "fetch": {"outcome": "failed", "error": {"code": "x", "message": "no\nnet"}}
            },
        },
        tracePage={
            "start": 0,
            "total": 1,
            "items": [
                {
                    "seq": 1,
                    "at": START_MS + 60_000,
                    "type": "attempt.started",
                    "attemptId": "attempt-copy-1",
                    "nodeId": "copy",
                }
            ],
        },
        updates=[
            {
                "seq": 2,
                "at": START_MS,
                "nodeId": "copy",
                "type": "progress",
                "key": "node:copy",
                "data": {"completed": 30, "total": 120, "unit": "files", "phase": "src"},
            },
            {
                "seq": 3,
                "at": START_MS,
                "nodeId": "copy",
                "type": "disk",
                "key": "sda",
                "data": {"free": 12},
            },
        ],
    )
    assert drawn(view) == snapshot


def test_nodes_stand_behind_those_that_lead_to_them() -> None:
    """A node that two branches lead to stands behind both, a loop's way back changes nothing."""
    edges: list[Json] = [
        {"from": "start", "on": "$.x", "cases": {"a": "join", "b": "left", "c": "right"}},
        {"from": "left", "to": "join"},
        {"from": "right", "to": "left"},
        {"from": "join", "on": "$.y", "cases": {"again": "start", "done": "end"}},
    ]
    nodes: dict[str, dict[str, Json]] = {
        name: {} for name in ("start", "join", "end", "left", "right", "lost")
    }
    order = run_view(nodes, edges).workflow.order
    assert order == ("start", "right", "left", "join", "end", "lost")


def test_a_large_graph_is_a_window_around_the_work() -> None:
    """Of a graph that does not fit the rows around the work are shown, the others counted."""
    names = [f"node{number:03}" for number in range(100)]
    edges: list[Json] = [{"from": a, "to": b} for a, b in pairwise(names)]
    view = run_view({name: {} for name in names}, edges, state={"currentNode": "node050"})
    lines = drawn(view, replace(NOW, rows_max=5))[3:]
    assert lines[0] == "  … 48 nodes above"
    assert [line.split()[1] for line in lines[1:-1]] == names[48:53]
    assert lines[-1] == "  … 47 nodes below"
    last = run_view({name: {} for name in names}, edges, graphSteps=[step("node099", "ok")])
    assert drawn(last, replace(NOW, rows_max=5))[-1].split()[1] == "node099"


def test_what_a_view_leaves_out_is_not_made_up() -> None:
    """Of a long run only the newest steps are known; of a large definition some of the nodes."""
    state: dict[str, Json] = {"finishedAt": START_MS + 9_000}
    nodes: dict[str, dict[str, Json]] = {"one": {}, "two": {}}
    for start, word in ((0, "not reached"), (1, "unknown")):
        view = run_view(
            nodes, LINE, graphSteps=[step("two", "ok")], graphStepStart=start, state=state
        )
        assert word in drawn(view)[3]
    window: dict[str, Json] = {
        "name": "x",
        "startAt": "zero",
        "nodes": {"one": {"type": "compute"}},
        "nodeTotal": 9,
    }
    assert drawn(run_view({"one": {}}, workflow=window))[-1] == "  … 8 nodes elsewhere"


def test_a_narrow_window_shortens_names_first() -> None:
    """Where a run stands, how long it took and what went wrong stay in the window."""
    name = "a-node-with-a-name-that-says-everything-about-it"
    error: dict[str, Json] = {"code": "x", "message": "no luck"}
    view = run_view(
        {name: {}},
        graphSteps=[step(name, "failed")],
        state={"title": "T" * 200, "results": {name: {"outcome": "failed", "error": error}}},
    )
    lines = drawn(view, replace(NOW, columns=60))
    assert "…" in lines[0]
    assert lines[0].endswith("1 min 5 s")
    assert len(lines[0]) <= 60
    assert "failed" in lines[-1]
    assert lines[-1].index("no luck") < 60
    assert name in drawn(view)[-1]


def retried(**state: Json) -> RunView:
    """Return a run that tries a node for the third time, at its second visit."""
    error: dict[str, Json] = {"code": "x", "message": "no luck at all"}
    payload: Json = {"visit": 2, "attemptNumber": 3}
    started: Json = {
        "seq": 1,
        "at": START_MS + 60_000,
        "type": "attempt.started",
        "attemptId": "attempt-call-3",
        "nodeId": "call",
        "payload": payload,
    }
    return run_view(
        {"call": {}, "end": {}},
        [{"from": "call", "to": "end"}],
        graphSteps=[step("call", "failed", number=2, visit=2)],
        tracePage={"start": 0, "total": 1, "items": [started]},
        state={
            "currentNode": "call",
            "currentAttemptId": "attempt-call-3",
            "results": {"call": {"outcome": "failed", "error": error}},
            **state,
        },
    )


def test_a_node_that_is_tried_again_says_why() -> None:
    """It stands there how often it was tried, and what went wrong before."""
    (row,) = [line for line in drawn(retried()) if " call " in line]
    assert row.endswith("5.0 s  2 visits  3 attempts  before: no luck at all")
    other = retried(currentAttemptId="attempt-call-4")
    assert "  3 attempts" not in "".join(drawn(other))


def test_what_does_not_fit_beside_a_node_stands_below() -> None:
    """In a narrow window an error is a line of its own, which nothing in front of it shortens."""
    view = retried(statusDetail="calling")
    wide = drawn(view, replace(NOW, columns=120))
    narrow = drawn(view, replace(NOW, columns=80))
    assert len(narrow) == len(wide) + 1
    at = narrow.index("      before: no luck at all")
    assert narrow[at - 1].endswith("3 attempts  calling")
    assert all(len(line) <= 80 for line in narrow)


def test_lines_count_and_not_nodes() -> None:
    """Where nodes have several lines fewer fit; the one that the run is at always does."""
    view = retried()
    narrow = replace(NOW, columns=60)
    assert drawn(view, replace(narrow, rows_max=3))[-1].split()[1] == "end"
    lines = drawn(view, replace(narrow, rows_max=2))
    assert lines[-2:] == ["      before: no luck at all", "  … 1 node below"]
    assert " call " in drawn(view, replace(narrow, rows_max=1))[-3]


@pytest.mark.parametrize(
    ("status", "control", "words"),
    [
        ("waiting", "answer", "  Answer it: pi-workflows answer run-1"),
        ("paused", "resume", "  Let it go on: pi-workflows resume run-1"),
        ("ambiguous", "review", "  Look at it: pi-workflows effects --run run-1"),
        ("queued", "resume", "  When it is put right: pi-workflows resume run-1"),
    ],
)
def test_a_run_that_stands_still_says_what_helps(status: str, control: str, words: str) -> None:
    """The command stands under the reason, where it is asked for and the server offers it."""
    display: Json = {"status": status, "reason": "Why.", "controls": [control]}
    view = run_view({"one": {}}, display=display)
    advised = replace(NOW, has_advice=True)
    assert words in drawn(view, advised)
    assert words not in drawn(view)
    none = run_view({"one": {}}, display={"status": status, "reason": "Why."})
    assert words not in drawn(none, advised)


def test_a_checkpoint_says_what_it_asks() -> None:
    """While a run waits for an answer, the question stands beside its node."""
    nodes: dict[str, dict[str, Json]] = {"ask": {"type": "checkpoint", "summary": "Ship it?"}}
    view = run_view(nodes, status="waiting", state={"waitingOn": "ask"})
    assert drawn(view)[-1].endswith("  Ship it?")
    assert "Ship it?" not in "".join(drawn(run_view(nodes)))


def test_a_retry_says_when_it_is_due() -> None:
    """A queued run that waits for its delay says how long; behind it, that it needs a runner."""
    item: Json = {
        "seq": 1,
        "at": START_MS,
        "type": "run.requeued",
        "payload": {"reason": "retry", "availableAt": START_MS + 65_600},
    }
    view = run_view(
        {"one": {}},
        status="queued",
        reason="Waiting for a free runner.",
        queue_status="queued",
        tracePage={"start": 0, "total": 1, "items": [item]},
    )
    assert "  Tries again in 0.6 s." in drawn(view)
    assert "  Waiting for a free runner." in drawn(view, Scene(now_ms=START_MS + 66_000))


def test_a_pause_waits_for_what_must_not_be_cut_off() -> None:
    """A paused run whose runner still works says which node is finishing."""
    display: Json = {
        "status": "paused",
        "activity": "supervised_runner",
        "reason": "Paused until somebody resumes it.",
    }
    view = run_view({"pay": {}}, state={"currentNode": "pay"}, display=display)
    assert "  Paused; pay is finishing." in drawn(view)


def test_an_ambiguous_effect_shows_at_its_node() -> None:
    """The run is at no node any more; its node is the one whose effect is ambiguous."""
    items: list[Json] = [
        {"seq": 1, "at": START_MS, "type": "attempt.started", "nodeId": "pay", "attemptId": "a"},
        {"seq": 2, "at": START_MS, "type": "run.effect_ambiguous", "attemptId": "a"},
    ]
    view = run_view(
        {"pay": {}, "book": {}},
        status="ambiguous",
        tracePage={"start": 0, "total": 2, "items": items},
    )
    assert any(re.match(r"  ! pay +compute +ambiguous", line) for line in drawn(view))


def test_a_picture_without_its_server_says_so() -> None:
    """What may be old is marked."""
    view = run_view({"one": {}})
    assert "  The server is gone; reconnecting." in drawn(view, replace(NOW, is_stale=True))


def test_what_works_turns() -> None:
    """The symbol of work moves from frame to frame on a terminal, and stands still elsewhere."""
    view = run_view({"one": {}}, state={"currentNode": "one"})
    moments = [Scene(now_ms=START_MS + at, is_moving=True) for at in range(0, 1_000, 100)]
    frames = {drawn(view, scene)[0][0] for scene in moments}
    assert len(frames) == 10
    assert re.match(r"▶ running", drawn(view)[0])
