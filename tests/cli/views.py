"""Run views, small and made by hand: what a picture needs, in the server's form."""

from __future__ import annotations

from pi_workflows.base.canonical import Json
from pi_workflows.cli.run_view import RunView

START_MS = 1_700_000_000_000


def run_view(
    nodes: dict[str, dict[str, Json]],
    edges: list[Json] | None = None,
    *,
    status: str = "running",
    reason: str | None = None,
    queue_status: str = "running",
    controls: list[Json] | None = None,
    **members: Json,
) -> RunView:
    """Return a view.

    Args:
        nodes: The nodes by name, of type `compute` unless they say otherwise.
        edges: The ways out of them.
        status: The display status.
        reason: The display's reason.
        queue_status: Where the run stands in the queue.
        controls: What may be done.
        members: Further members of the view; those of `state` under that name.
    """
    state = members.pop("state", {})
    assert isinstance(state, dict)
    document: dict[str, Json] = {
        "runId": "run-1",
        "revision": 1,
        "runRevision": 1,
        "live": True,
        "possiblyInterrupted": False,
        "display": {"status": status, "controls": controls or [], "reason": reason},
        "state": {
            "workflowName": "sample",
            "workflowSource": {"type": "file", "ref": "/sample_workflow.py"},
            "traceSeq": 1,
            "status": "running",
            "createdAt": START_MS,
            "startedAt": START_MS,
            **state,
        },
        "queue": {"status": queue_status},
        "workflow": {
            "name": "sample",
            "startAt": next(iter(nodes)),
            "nodes": {name: {"type": "compute", **node} for name, node in nodes.items()},
            "edges": edges or [],
        },
        "tracePage": {"start": 0, "total": 1, "items": []},
        **members,
    }
    return RunView.parse(document)


def step(
    node: str,
    outcome: str,
    *,
    start: int = 0,
    took: int = 1_000,
    number: int = 1,
    visit: int = 1,
) -> Json:
    """Return the newest settled attempt of a node."""
    return {
        "attemptId": f"attempt-{node}-{number}",
        "nodeId": node,
        "visit": visit,
        "attemptNumber": number,
        "outcome": outcome,
        "startedAt": START_MS + start,
        "finishedAt": START_MS + start + took,
    }
