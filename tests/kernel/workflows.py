"""Small definitions that together have every kind of node, way and policy."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from tests.kernel.compositions import included
from tests.kernel.harness import LINE, definition

_GATE: Final[dict[str, Json]] = {"type": "checkpoint", "timeoutMs": 0}
_ROUTED: Final[Json] = {"ok": "done", "failed": "late", "timed_out": "late"}
_CHOICES: Final[Json] = [{"id": "a", "label": "Do it"}, {"id": "b", "label": "Leave it"}]


def _person(terms: dict[str, Json]) -> dict[str, Json]:
    """Return a node at which a person decides."""
    policy: Json = {"audience": "operator", "choices": _CHOICES, **terms}
    return {**_GATE, "humanDecision": policy}


ROUTES: Final = ("a", "b", "c")
"""What outputs name; the definitions have no case for the last."""


def retry(delay_ms: int, attempts: int = 3) -> Json:
    """Return a policy that tries again after failures and timeouts."""
    return {
        "maxAttempts": attempts,
        "on": ["failed", "timed_out"],
        "delayMs": delay_ms,
        "backoff": 2.0,
    }


def _action(recovery: str, retry: Json = None) -> dict[str, Json]:
    """Return a deploying action."""
    node: dict[str, Json] = {
        "type": "action",
        "actionForm": "function",
        "effect": {"type": "deploy", "recovery": recovery},
    }
    return node if retry is None else {**node, "retry": retry}


def agent(**more: Json) -> dict[str, Json]:
    """Return a node that a model answers with a value."""
    return {"type": "agent", "expectedOutput": "A plan.", **more}


def speaker(chars_max: int | None = None, **more: Json) -> dict[str, Json]:
    """Return a node that a model answers with the text of its turn."""
    output: dict[str, Json] = {"kind": "assistant-message"}
    if chars_max is not None:
        output["maxChars"] = chars_max
    return {"type": "agent", "expectedOutput": output, **more}


def _switch(source: str, cases: Json, on: str = "$.route") -> dict[str, Json]:
    """Return a way out that depends on a value."""
    return {"from": source, "on": on, "cases": cases}


TALK: Final = definition(
    {
        "plan": agent(),
        "told": {"type": "notify", "notifyKind": "progress"},
        "say": speaker(80),
        "late": {},
    },
    [
        _switch("plan", {"ok": "told", "failed": "late", "timed_out": "late"}, "$result.outcome"),
        {"from": "told", "to": "say"},
    ],
)
"""What a session's model is asked in its own words and in those of its workflow."""

WORKFLOWS: Final[dict[str, Blob]] = {
    "line": LINE,
    "loop": definition(
        {"one": {}, "two": {}},
        [_switch("one", {"a": "two", "b": "one"}), {"from": "two", "to": "one"}],
        max_steps=5,
    ),
    "retried": definition(
        {"one": {"retry": retry(0), "timeoutMs": 1_000}, "done": {}, "late": {}},
        [_switch("one", _ROUTED, "$result.outcome")],
    ),
    "delayed": definition(
        {"one": {"retry": retry(2_000), "timeoutMs": None}, "two": {}},
        [{"from": "one", "to": "two"}],
    ),
    "polling": definition(
        {"look": {}, "rest": {}},
        [_switch("look", {"a": "rest"}), {"from": "rest", "to": "look", "delay": 3_000}],
        max_steps=9,
    ),
    "gate": definition(
        {"work": {}, "gate": _GATE, "after": {}},
        [{"from": "work", "to": "gate"}, _switch("gate", {"a": "after", "b": "work"})],
        max_steps=9,
    ),
    "idempotent": definition(
        {"deploy": _action("idempotent", retry(0, 2)), "done": {}},
        [_switch("deploy", {"a": "done", "b": "deploy"})],
        max_steps=8,
    ),
    "slow": definition(
        {"deploy": _action("idempotent", retry(1_000, 2)), "done": {}, "late": {}},
        [_switch("deploy", _ROUTED, "$result.outcome")],
    ),
    "manual": definition(
        {"deploy": _action("manual"), "done": {}, "late": {}},
        [_switch("deploy", _ROUTED, "$result.outcome")],
    ),
    "approved": definition(
        {
            "gate": _person({"timeoutMs": 4_000, "defaultResponse": {"choice": "a"}}),
            "deploy": {**_action("idempotent", retry(0, 2)), "approvedBy": "gate"},
            "done": {},
        },
        [
            _switch("gate", {"a": "deploy", "b": "done"}, "$.choice"),
            _switch("deploy", {"ok": "done", "failed": "gate"}, "$result.outcome"),
        ],
        max_steps=12,
    ),
    "expiring": definition(
        {"gate": _person({"expiresMs": 4_000}), "done": {}, "late": {}},
        [_switch("gate", _ROUTED, "$result.outcome")],
    ),
    "talk": TALK,
    "included": included(),
    "mixed": definition(
        {
            "plan": {},
            "deploy": _action("manual"),
            "gate": _GATE,
            "publish": {**_action("idempotent", retry(0)), "timeoutMs": 0},
        },
        [
            {"from": "plan", "to": "deploy"},
            {"from": "deploy", "to": "gate"},
            _switch("gate", {"a": "publish", "b": "plan"}),
            _switch("publish", {"a": "plan"}),
        ],
        max_steps=14,
    ),
}
