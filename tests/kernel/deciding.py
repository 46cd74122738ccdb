"""Runs that ask a person, and the answers that they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, decode
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.decision.resolution import AnswerDecision, CloseDecision
from pi_workflows.domain.fact import Actor
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.store.records import Permit
from tests.kernel.harness import Harness, begin, definition

Terms: TypeAlias = dict[str, Json] | None
"""What a decision has of a deadline."""
RUN: Final = "run-1"
PERSON: Final = Actor("human", "operator:key-1")
POLICY: Final = Actor("policy", "host-1")
MODEL: Final = Actor("session", "client")
PLAN: Final[Json] = {"command": ["deploy", "v1"]}
CHOICES: Final[Json] = [
    {"id": "go", "label": "Deploy it"},
    {"id": "stop", "label": "Leave it"},
    {
        "id": "replan",
        "label": "Plan again",
        "input": {"name": "how", "prompt": "What should change?", "charsMin": 1, "charsMax": 40},
    },
]
DEFAULT: Final[dict[str, Json]] = {
    "timeoutMs": 600_000,
    "defaultResponse": {"choice": "stop"},
}
EXPIRY: Final[dict[str, Json]] = {"expiresMs": 600_000}


def policy(terms: Terms = None) -> dict[str, Json]:
    """Return what a definition declares of a decision."""
    return {"audience": "operator", "choices": CHOICES, **(terms or {})}


def gated(terms: Terms = None) -> Blob:
    """Return a definition whose only node asks a person."""
    gate: dict[str, Json] = {
        "type": "checkpoint",
        "timeoutMs": 0,
        "summary": "Go on?",
        "humanDecision": policy(terms),
    }
    return definition({"gate": gate})


def decided_by(terms: Terms = None) -> Blob:
    """Return a definition that asks, acts as it was told to, and reports."""
    gate: dict[str, Json] = {"type": "checkpoint", "timeoutMs": 0, "humanDecision": policy(terms)}
    deploy: dict[str, Json] = {
        "type": "action",
        "actionForm": "function",
        "effect": {"type": "deploy", "recovery": "idempotent"},
        "approvedBy": "gate",
        "retry": {"maxAttempts": 3, "on": ["failed"], "delayMs": 0, "backoff": 1.0},
    }
    return definition(
        {"plan": {}, "gate": gate, "deploy": deploy, "done": {}},
        [
            {"from": "plan", "to": "gate"},
            {
                "from": "gate",
                "on": "$.choice",
                "cases": {"go": "deploy", "stop": "done", "replan": "plan"},
            },
            {"from": "deploy", "to": "done"},
        ],
    )


def question(subject: Json = PLAN, terms: Terms = None) -> Blob:
    """Return the contract with which a node asks a person."""
    return Blob.json(
        {
            "schema": "pi-workflows.interaction-contract.v1",
            "kind": "decision",
            "summary": "Deploy v1?",
            "decision": {
                **policy(terms),
                "title": "Deploy v1?",
                "subject": subject,
                "presentation": {
                    "schema": "pi-workflows.decision-presentation.v1",
                    "summary": "Version 1 goes out.",
                    "blocks": [{"type": "bullets", "items": ["one", "two"]}],
                },
            },
        }
    )


def asks(subject: Json = PLAN, *, number: int = 1, terms: Terms = None) -> WaitForInput:
    """Return the command with which the gate asks."""
    key = ids.attempt_id(RUN, "gate", number)
    return WaitForInput(RUN, key, "decision", question(subject, terms))


def request_of(number: int = 1) -> str:
    """Return the question of the gate's attempt."""
    return ids.request_id(RUN, ids.attempt_id(RUN, "gate", number))


def decision_of(number: int = 1) -> str:
    """Return the decision of the gate's attempt."""
    return ids.decision_id(RUN, ids.attempt_id(RUN, "gate", number))


def given(
    choice: str = "go",
    how: str | None = None,
    *,
    name: str = "s1",
    revision: int = 1,
    number: int = 1,
) -> AnswerDecision:
    """Return an answer."""
    response: dict[str, Json] = {"choice": choice}
    if how is not None:
        response["input"] = {"how": how}
    return AnswerDecision(
        RUN, request_of(number), revision, f"submission-{name}", f"key-{name}", Blob.json(response)
    )


def closing(number: int = 1) -> CloseDecision:
    """Return what a deadline asks for."""
    return CloseDecision(RUN, decision_of(number))


def asked(bench: Harness, terms: Terms = None) -> Permit:
    """Bring a run to where it asks."""
    permit = bench.launch(workflow=gated(terms))
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(asks(terms=terms), permit=permit)
    return permit


def row_of(bench: Harness, table: str, key: str) -> tuple[object, ...] | None:
    """Return the row that begins with a key."""
    return next((row for row in bench.dump(table) if row[0] == key), None)


def resolution(bench: Harness, number: int = 1) -> tuple[object, ...] | None:
    """Return outcome, provenance and actor of the gate's decision."""
    row = row_of(bench, "human_decision_resolutions", decision_of(number))
    return None if row is None else (row[1], row[2], row[6])


def candidates(bench: Harness) -> list[tuple[object, object, object]]:
    """Return the name, the source and the fate of each answer."""
    return [(row[1], row[2], row[6]) for row in bench.dump("human_decision_submissions")]


def receipt(answer: Answer) -> Json:
    """Return what whoever asked was told."""
    return decode(answer.receipt or b"null")


def _requested(bench: Harness) -> Order:
    """A node asks a person."""
    permit = bench.launch(workflow=gated())
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    return bench.order(asks(), permit=permit)


def _repeated(bench: Harness) -> Order:
    """Somebody else decides alike."""
    asked(bench)
    bench.do(given(), actor=PERSON)
    return bench.order(given(name="s2"), actor=PERSON)


def _decided(bench: Harness) -> Order:
    """A person decides."""
    asked(bench)
    return bench.order(given(), actor=PERSON)


SCENES: Final[dict[str, Callable[[Harness], Order]]] = {
    "decision.requested": _requested,
    "decision.submitted": _repeated,
    "decision.resolved": _decided,
}
