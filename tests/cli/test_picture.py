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
            step("check", "ok", start=4_000, number=2),
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
