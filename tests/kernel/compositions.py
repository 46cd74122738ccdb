"""A definition of workflows inside workflows, and a run's way through it."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.definition.snapshot import Snapshot

_NODES: Final = ("plan", "last", "ship/look", "ship/stop", "ship/repair/try", "ship/repair/end")


def _edge(source: str, cases: dict[str, Json], scope: str | None = None) -> Json:
    """Return a switch on the whole output."""
    edge: dict[str, Json] = {"from": source, "on": "$", "cases": cases}
    return edge if scope is None else {**edge, "scope": scope}


def composition(
    *, max_steps: int = 100, ship: int = 100, repair: int = 100, retry: Json = None
) -> Blob:
    """Return `repair` inside `ship` inside the run's workflow, each with its limit.

    Every output names the way on: `in`, `out`, `again` or `back`. `ship` is left by its own `stop`,
    or where `repair` is left by `end`, which may have a retry.
    """
    end: dict[str, Json] = {"type": "compute", "timeoutMs": 900_000}
    if retry is not None:
        end["retry"] = retry
    exits: Json = {"done": {"node": "ship/repair/end"}, "stopped": {"node": "ship/stop"}}
    document: dict[str, Json] = {
        "schema": "pi-workflows.definition-snapshot.v1",
        "name": "sample",
        "startAt": "plan",
        "maxSteps": max_steps,
        "nodes": {
            **{path: {"type": "compute", "timeoutMs": 900_000} for path in _NODES},
            "ship/repair/end": end,
        },
        "edges": [
            {"from": "plan", "to": "ship/look"},
            _edge("ship/look", {"in": "ship/repair/try", "out": "ship/stop"}, "ship"),
            _edge("ship/repair/end", {"out": "last", "back": "ship/look"}),
            _edge(
                "ship/repair/try",
                {"again": "ship/repair/try", "out": "ship/repair/end"},
                "ship/repair",
            ),
            _edge("ship/stop", {"out": "last", "back": "ship/look", "again": "plan"}),
        ],
        "mounts": [
            {
                "path": "ship",
                "workflowName": "shipping",
                "startAt": "ship/look",
                "maxSteps": ship,
                "exits": exits,
            },
            {
                "path": "ship/repair",
                "workflowName": "repairing",
                "startAt": "ship/repair/try",
                "maxSteps": repair,
                "exits": {"fixed": {"node": "ship/repair/end"}},
            },
        ],
    }
    blob = Blob.json(document)
    Snapshot.parse(blob.content)
    return blob


def included() -> Blob:
    """Return a workflow with a gate, which the run's workflow enters again and again.

    Both have limits that are reached: outputs name the way at `$.route`.
    """
    gate: Json = {"type": "checkpoint", "timeoutMs": 0}
    plain: Json = {"type": "compute", "timeoutMs": 900_000}
    deploy: Json = {
        "type": "action",
        "timeoutMs": 900_000,
        "actionForm": "function",
        "effect": {"type": "deploy", "recovery": "idempotent"},
    }
    document: dict[str, Json] = {
        "schema": "pi-workflows.definition-snapshot.v1",
        "name": "sample",
        "startAt": "part/one",
        "maxSteps": 11,
        "nodes": {"after": plain, "part/one": deploy, "part/gate": gate, "part/end": plain},
        "edges": [
            {"from": "part/end", "on": "$.route", "cases": {"a": "part/one", "b": "after"}},
            {"from": "part/gate", "to": "part/one", "scope": "part"},
            {
                "from": "part/one",
                "on": "$.route",
                "cases": {"a": "part/end", "b": "part/gate"},
                "scope": "part",
            },
        ],
        "mounts": [
            {
                "path": "part",
                "workflowName": "parting",
                "startAt": "part/one",
                "maxSteps": 4,
                "exits": {"done": {"node": "part/end"}},
            }
        ],
    }
    blob = Blob.json(document)
    Snapshot.parse(blob.content)
    return blob
