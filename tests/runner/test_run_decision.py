"""Decisions of people: built once, shown whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from pi_workflows.definition.decision import DecisionQuestion
from pi_workflows.protocol.proposals import FinishAttempt, StartAttempt, WaitForInput
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

WORKFLOW = """
CHOICES = human_choices(continue_=choice("Continue"),
                        replan=choice("Replan", input=text_input("how", prompt="How?")))

def build(ctx):
    return REQUEST

workflow = define_workflow("sample", input=Input, start="plan",
    nodes={"plan": compute(lambda ctx: {"steps": 3}),
           "approve": human_decision(audience="operator", choices=CHOICES, request=build,
               on_timeout=Timeout(timedelta(minutes=10), {"choice": "continue"})),
           "end": compute(lambda ctx: 1)},
    edges=[edge("plan", "approve"),
           human_decision_edge("approve", cases={"continue": "end", "replan": "plan"})])
"""
SOUND = """DecisionRequest(title="Approve the plan", subject=ctx.outputs["plan"],
    presentation=present("Three steps.").section("Steps").bullets("one", "two").fields(Count=3))"""


def served(author: Callable[[str], Path], start: Callable[[], Peer], request: str) -> Peer:
    """Run a workflow whose second node asks a person."""
    peer = start()
    peer.begin(launch_of(author(WORKFLOW.replace("REQUEST", request)), {}))
    peer.serve()
    return peer


def test_a_person_is_asked_also_without_a_session(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The contract holds the whole question: its subject, what is shown, and how it ends."""
    peer = served(author, start, SOUND)
    (wait,) = of_kind(peer.commands, WaitForInput)
    assert wait.kind == "decision"
    assert of_kind(peer.commands, StartAttempt)[-1].node_type == "checkpoint"
    contract = peer.value(wait.contract)
    assert isinstance(contract, dict)
    asked = contract.pop("decision")
    assert contract == {
        "schema": "pi-workflows.interaction-contract.v1",
        "kind": "decision",
        "nodeId": "approve",
        "summary": "Approve the plan",
    }
    question = DecisionQuestion.model_validate_json(canonical.encode(asked))
    assert question.title == "Approve the plan"
    assert question.subject == {"steps": 3}
    assert question.timeout_ms == 600_000
    assert [choice.id for choice in question.choices] == ["continue", "replan"]
    assert question.presentation.summary == "Three steps."
    assert len(question.presentation.blocks) == 3


@pytest.mark.parametrize(
    ("request_text", "code"),
    [
        ("{'title': 'x'}", "requestInvalid"),
        (SOUND.replace('"Approve the plan"', '"x" * 1_001'), "requestInvalid"),
        (SOUND.replace('ctx.outputs["plan"]', "{1}"), "notJson"),
        (SOUND.replace('"Three steps."', '"x" * 16_001'), "presentationInvalid"),
    ],
)
def test_what_cannot_be_shown_whole_is_not_asked(
    author: Callable[[str], Path], start: Callable[[], Peer], request_text: str, code: str
) -> None:
    """A limit fails the node; nothing is shortened, and nobody is asked about a part."""
    peer = served(author, start, request_text)
    assert not of_kind(peer.commands, WaitForInput)
    finish = of_kind(peer.commands, FinishAttempt)[-1]
    assert finish.error is not None
    assert finish.error.code == code, finish.error.message
