"""What each form of node may declare, in a snapshot that nobody's constructor made."""

from __future__ import annotations

from typing import Any

import pytest

from pi_workflows.definition.decision import Choice, DecisionPolicy, Response, TextInput
from pi_workflows.definition.graph import snapshot_problems
from pi_workflows.definition.outline import outline
from pi_workflows.definition.snapshot import AssistantOutput, Edge, EffectPolicy, Node, Snapshot

DECISION = DecisionPolicy(
    audience="operator",
    choices=(
        Choice(id="continue", label="Continue"),
        Choice(id="replan", label="Replan", input=TextInput(name="how", prompt="How?")),
    ),
    timeout_ms=600_000,
    default_response=Response(choice="continue"),
)


def codes(node: Node) -> list[str]:
    """Return the codes of what is wrong with a definition of one node."""
    snapshot = Snapshot(name="x", start_at="a", max_steps=1, nodes={"a": node}, edges=())
    return [problem.code for problem in snapshot_problems(snapshot)]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("expected_output", "x"),
        ("expected_output", AssistantOutput()),
        ("allowed_tools", ()),
        ("prompt_chars_max", 1),
        ("notify_kind", "final"),
    ],
)
def test_members_belong_to_a_form(member: str, value: object) -> None:
    """A member of another form of node is refused."""
    node = Node(type="compute").model_copy(update={member: value})
    assert codes(node) == ["memberMisplaced"]


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"type": "agent", "output_model": "m.M"}, []),
        ({"type": "agent", "expected_output": "x"}, []),
        ({"type": "agent"}, ["outputMissing"]),
        ({"type": "agent", "expected_output": AssistantOutput(), "output_model": "m.M"},
         ["outputInvalid"]),
        ({"type": "agent", "expected_output": "x", "choices": ("y",)}, ["choicesInvalid"]),
        ({"type": "agent", "expected_output": "x", "choice_field": "y"}, ["choicesInvalid"]),
        ({"type": "notify"}, ["notifyKindMissing"]),
        ({"type": "notify", "notify_kind": "progress"}, []),
        ({"type": "checkpoint", "human_decision": DECISION}, []),
    ],
)  # fmt: skip
def test_what_a_form_needs(parts: dict[str, Any], found: list[str]) -> None:
    """Each form of node has what it cannot do without, and nothing that contradicts it."""
    assert codes(Node(**parts)) == found


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (Node(type="agent", expected_output="x"), "agent"),
        (Node(type="agent", expected_output=AssistantOutput()), "assistant"),
        (Node(type="checkpoint"), "checkpoint"),
        (Node(type="checkpoint", human_decision=DECISION), "decision"),
        (Node(type="notify", notify_kind="final"), None),
        (Node(type="compute"), None),
    ],
)
def test_a_node_waits_for_one_kind_of_answer(node: Node, kind: str | None) -> None:
    """Server and runner read from the snapshot what a node asks for."""
    assert node.request_kind == kind


def test_an_outline_tells_models_and_people_apart() -> None:
    """Each form of node has its own words; tools, choices, ends and approvals are told."""
    nodes = {
        "plan": Node(
            type="agent",
            output_model="x_workflow.Plan",
            allowed_tools=("read", "grep"),
            prompt_chars_max=200_000,
            timeout_ms=60_000,
        ),
        "explain": Node(
            type="agent", expected_output=AssistantOutput(max_chars=2_000), timeout_ms=0
        ),
        "count": Node(type="agent", expected_output="a number", allowed_tools=(), timeout_ms=0),
        "pick": Node(
            type="agent",
            expected_output="one of",
            choices=("y", "n"),
            choice_field="route",
            timeout_ms=0,
        ),
        "approve": Node(type="checkpoint", human_decision=DECISION),
        "deploy": Node(
            type="action",
            action_form="function",
            effect=EffectPolicy(type="deploy", recovery="manual"),
            approved_by="approve",
            timeout_ms=0,
        ),
        "say": Node(type="notify", notify_kind="final", timeout_ms=1_000),
    }
    edges = (
        Edge(source="approve", on="$.choice", cases={"continue": "deploy", "replan": "plan"}),
        Edge(source="count", to="pick"),
        Edge(source="deploy", to="say"),
        Edge(source="explain", to="count"),
        Edge(source="pick", on="$.route", cases={"y": "approve", "n": "say"}),
        Edge(source="plan", to="explain"),
    )
    snapshot = Snapshot(name="x", start_at="plan", max_steps=9, nodes=nodes, edges=edges)
    assert not snapshot_problems(snapshot)
    assert [line for line in outline(snapshot) if not line.startswith("    ")] == [
        "x: 7 nodes, at most 9 steps",
        (
            "  plan (start): agent, tools read, grep, prompt of at most 200,000 characters,"
            " output Plan, at most 1 min"
        ),
        "  explain: agent, output the turn's text of at most 2,000 characters, no time limit",
        "  count: agent, output 'a number', tools none, no time limit",
        "  pick: decision, chooses y or n, no time limit",
        "  say: final notification, at most 1 s",
        (
            "  approve: human decision, asks operator, chooses continue or replan, continue after"
            " 10 min"
        ),
        "  deploy: action, effect deploy (manual), approved by approve, no time limit",
    ]
