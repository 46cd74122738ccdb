"""Nodes that a model or a person takes: how they are written, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from pydantic import BaseModel

from pi_workflows import (
    Context,
    DecisionRequest,
    Problem,
    ProblemsFound,
    Response,
    Retry,
    Timeout,
    Workflow,
    action,
    agent,
    assistant_message,
    branch,
    choice,
    compute,
    control_loop,
    decision,
    decision_edge,
    define_workflow,
    edge,
    human_choices,
    human_decision,
    human_decision_edge,
    idempotent_effect,
    notify,
    present,
    switch,
    text_input,
)
from pi_workflows.authoring.nodes import AgentNode, HumanDecisionNode, NotifyNode
from pi_workflows.base import canonical
from pi_workflows.definition.snapshot import AssistantOutput

# Authors make mistakes that a checker would show them; these tests make them on purpose.
define: Callable[..., Workflow[Any]] = define_workflow
make_agent: Callable[..., Any] = agent
make_decision: Callable[..., Any] = decision
make_notify: Callable[..., Any] = notify
make_action: Callable[..., Any] = action
make_human: Callable[..., Any] = human_decision
make_choices: Callable[..., Any] = human_choices
make_choice: Callable[..., Any] = choice
make_text: Callable[..., Any] = text_input
make_loop: Callable[..., Any] = control_loop
make_decision_edge: Callable[..., Any] = decision_edge


class Task(BaseModel):
    """An input."""

    task: str


class Review(BaseModel):
    """What a model submits."""

    route: str


def told(ctx: Context[Task]) -> str:
    """Build a text."""
    return ctx.input.task


def asked(ctx: Context[Task]) -> DecisionRequest:
    """Build a decision."""
    return DecisionRequest(title="Go?", subject=ctx.input.task, presentation=present("Go on?"))


CHOICES = human_choices(
    continue_=choice("Continue"),
    replan=choice("Replan", input=text_input("instructions", prompt="What should change?")),
)


def problems_of(node: object, *others: tuple[str, object], **changes: Any) -> list[Problem]:
    """Return what is wrong with a workflow that begins with the node."""
    nodes: dict[str, object] = {"a": node, **dict(others)}
    try:
        define("sample", input=Task, start="a", nodes=nodes, **changes)
    except ProblemsFound as error:
        return list(error.problems)
    return []


def codes(node: object, *others: tuple[str, object], **changes: Any) -> list[str]:
    """Return the codes of what is wrong with it."""
    return [problem.code for problem in problems_of(node, *others, **changes)]


_EVERY_FORM: Final = (
    '{"edges":[{"cases":{"continue":"deploy","replan":"plan"},"from":"approve","on":"$.choice"},'
    '{"from":"deploy","to":"say"},{"from":"explain","to":"pick"},'
    '{"cases":{"n":"say","y":"approve"},"from":"pick","on":"$.route"},'
    '{"from":"plan","to":"review"},{"from":"review","to":"explain"}],'
    f'"inputModel":"{__name__}.Task","maxSteps":100,"mounts":[],"name":"sample","nodes":{{'
    '"approve":{"humanDecision":{"audience":"operator","choices":[{"id":"continue","label":'
    '"Continue"},{"id":"replan","input":{"charsMax":4000,"charsMin":1,"name":"instructions",'
    '"prompt":"What should change?"},"label":"Replan"}],'
    '"defaultResponse":{"choice":"continue"},'
    '"timeoutMs":600000},"timeoutMs":900000,"type":"checkpoint"},'
    '"deploy":{"actionForm":"function","approvedBy":"approve","effect":{"recovery":"idempotent",'
    '"type":"deploy"},"timeoutMs":900000,"type":"action"},'
    '"explain":{"expectedOutput":{"kind":"assistant-message","maxChars":2000},'
    '"timeoutMs":900000,"type":"agent"},'
    '"pick":{"choiceField":"route","choices":["y","n"],"expectedOutput":'
    '"A JSON object whose \\"route\\" is one of: \\"y\\", \\"n\\"","timeoutMs":900000,'
    '"type":"agent"},'
    '"plan":{"allowedTools":[],"expectedOutput":"a plan in JSON","timeoutMs":900000,'
    '"type":"agent"},'
    '"review":{"allowedTools":["read","grep"],'
    f'"outputModel":"{__name__}.Review","promptCharsMax":200000,"retry":{{"backoff":1,'
    '"delayMs":0,"maxAttempts":2,"on":["failed","timed_out"]},"timeoutMs":900000,'
    '"type":"agent"},'
    '"say":{"notifyKind":"final","timeoutMs":900000,"type":"notify"}},'
    '"presentation":"Say what changed.",'
    '"schema":"pi-workflows.definition-snapshot.v1","startAt":"plan"}'
)


def test_every_form_is_sound_as_the_contract_writes_it() -> None:
    """One workflow with every node of a model or a person, and the document that it makes."""

    @agent(output="a plan in JSON", validate=dict, allowed_tools=[])
    async def plan(ctx: Context[Task]) -> str:
        return ctx.input.task

    @notify(kind="final")
    def say(ctx: Context[Task]) -> str:
        return ctx.input.task

    workflow = define_workflow(
        "sample",
        input=Task,
        start="plan",
        presentation="Say what changed.",
        nodes={
            "plan": plan,
            "review": agent(
                prompt=told,
                output=Review,
                allowed_tools=["read", "grep"],
                prompt_chars_max=200_000,
                retry=Retry(max_attempts=2),
            ),
            "explain": agent(prompt="Explain.", output=assistant_message(max_chars=2_000)),
            "pick": decision(choices=("y", "n"), question="Same plan?"),
            "approve": human_decision(
                audience="operator",
                choices=CHOICES,
                on_timeout=Timeout(timedelta(minutes=10), {"choice": "continue"}),
                request=asked,
            ),
            "deploy": action(told, effect=idempotent_effect("deploy"), approved_by="approve"),
            "say": say,
        },
        edges=[
            edge("plan", "review"),
            edge("review", "explain"),
            edge("explain", "pick"),
            decision_edge("pick", cases={"y": "approve", "n": "say"}),
            human_decision_edge("approve", cases={"continue": "deploy", "replan": "plan"}),
            edge("deploy", "say"),
        ],
    )
    assert canonical.encode(workflow.snapshot.document()).decode() == _EVERY_FORM
    parsed = type(workflow.snapshot).parse(canonical.encode(workflow.snapshot.document()))
    assert parsed == workflow.snapshot


def test_constructors_are_decorators_too() -> None:
    """Each constructor makes the same node of a function above it."""
    decorated = agent(output=assistant_message())(told)
    assert isinstance(decorated, AgentNode)
    assert decorated.expected == AssistantOutput()
    assert isinstance(notify(kind="progress")(told), NotifyNode)
    assert decision(choices=["a"])(told).choices == ("a",)
    node = human_decision(audience="operator", choices=CHOICES)(asked)
    assert isinstance(node, HumanDecisionNode)
    assert node.output_value({"choice": "replan", "input": {"instructions": "x"}}) == Response(
        choice="replan", input={"instructions": "x"}
    )


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, ["outputMissing"]),
        ({"output": ""}, ["outputInvalid"]),
        ({"output": "x" * 16_001}, ["outputInvalid"]),
        ({"output": 1}, ["outputInvalid", "outputMissing"]),
        ({"output": assistant_message(max_chars=0)}, ["outputInvalid"]),
        ({"output": assistant_message(max_chars="9")}, ["outputInvalid"]),  # type: ignore[arg-type]
        ({"output": assistant_message(), "retry": Retry()}, ["retryMisplaced"]),
        ({"output": assistant_message(), "validate": str}, ["validateMisplaced"]),
        ({"output": Review, "validate": str}, ["validateMisplaced"]),
        ({"output": "x", "validate": 1}, ["callbackInvalid"]),
        ({"output": "x", "validate": lambda: 1}, ["callbackInvalid"]),
        ({"output": "x", "prompt": ""}, ["promptInvalid"]),
        ({"output": "x", "prompt": 1}, ["promptInvalid"]),
        ({"output": "x", "prompt": lambda: "x"}, ["callbackInvalid"]),
        ({"output": "x", "prompt": "x" * 96_001}, ["promptInvalid"]),
        ({"output": "x", "prompt": "x" * 96_001, "prompt_chars_max": 100_000}, []),
        ({"output": "x", "prompt_chars_max": 1_000_001}, ["promptLimitInvalid"]),
        ({"output": "x", "prompt_chars_max": 0}, ["promptLimitInvalid"]),
        ({"output": "x", "prompt_chars_max": "9"}, ["promptLimitInvalid"]),
        ({"output": "x", "allowed_tools": "read"}, ["allowedToolsInvalid"]),
        ({"output": "x", "allowed_tools": ["read", 1]}, ["allowedToolsInvalid"]),
        ({"output": "x", "allowed_tools": ["read", "read"]}, ["allowedToolsInvalid"]),
        ({"output": "x", "allowed_tools": ["a b"]}, ["allowedToolsInvalid"]),
        ({"output": "x", "allowed_tools": [f"t{n}" for n in range(257)]}, ["allowedToolsInvalid"]),
        ({"output": "x", "timeout": timedelta(0)}, ["timeoutInvalid"]),
        ({"output": "x", "status_detail": ""}, ["statusDetailInvalid"]),
        ({"output": "x", "retry": 3}, ["retryInvalid"]),
    ],
)
def test_mistakes_in_an_agent(parts: dict[str, Any], found: list[str]) -> None:
    """Whatever is wrong with an agent is found when it is defined."""
    assert codes(make_agent(**{"prompt": told, **parts})) == found


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, []),
        ({"choices": "yn"}, ["choicesInvalid", "choicesInvalid"]),
        ({"choices": ["y", 1]}, ["choicesInvalid"]),
        ({"choices": ["y", "y"]}, ["choicesInvalid"]),
        ({"choices": [" "]}, ["choicesInvalid"]),
        ({"choices": [f"c{n}" for n in range(65)]}, ["choicesInvalid"]),
        ({"field": "a.b"}, ["choicesInvalid"]),
        ({"field": 1}, ["choicesInvalid"]),
        ({"question": ""}, ["promptInvalid"]),
    ],
)
def test_mistakes_in_a_decision(parts: dict[str, Any], found: list[str]) -> None:
    """Choices are different texts, and a member of the output holds the chosen one."""
    node = make_decision(**{"choices": ["y", "n"], "question": told, **parts})
    assert codes(node) == found


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({"function": 1}, ["callbackInvalid"]),
        ({"kind": "maybe"}, ["notifyKindInvalid"]),
        ({"retry": 1}, ["retryInvalid"]),
    ],
)
def test_mistakes_in_a_notification(parts: dict[str, Any], found: list[str]) -> None:
    """A notification has a text and says whether it is the last word."""
    function = parts.pop("function", told)
    assert codes(make_notify(function, **{"kind": "final", **parts})) == found


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, []),
        ({"audience": ""}, ["decisionInvalid"]),
        ({"audience": 1}, ["audienceInvalid", "decisionInvalid"]),
        ({"choices": ["y"]}, ["choicesInvalid", "decisionInvalid"]),
        ({"choices": make_choices()}, ["decisionInvalid"]),
        ({"choices": make_choices(a="Yes")}, ["choicesInvalid", "decisionInvalid"]),
        ({"choices": make_choices(a=choice("X"), b=choice("X"))}, ["decisionInvalid"]),
        ({"choices": make_choices(a=make_choice(1), b=choice("X"))}, ["choicesInvalid"]),
        ({"choices": make_choices(a=make_choice("A", input=1), b=choice("X"))}, ["choicesInvalid"]),
        (
            {"choices": make_choices(a=choice("A", input=make_text(1, prompt=2, chars_max="3")))},
            ["choicesInvalid", "choicesInvalid", "decisionInvalid"],
        ),
        (
            {"choices": make_choices(a=choice("A", input=make_text("x", prompt="p", chars_max=0)))},
            ["decisionInvalid"],
        ),
        ({"on_timeout": MINUTE}, ["onTimeoutInvalid"]),
        ({"on_timeout": Timeout(MINUTE, {"choice": "stop"})}, ["decisionInvalid"]),
        ({"on_timeout": Timeout(MINUTE, {"choice": "replan"})}, ["decisionInvalid"]),
        ({"on_timeout": Timeout(MINUTE, {"chose": "x"})}, ["onTimeoutInvalid", "decisionInvalid"]),
        (
            {"on_timeout": Timeout(MINUTE, {"choice": "replan", "input": {"instructions": "x"}})},
            [],
        ),
        (
            {"on_timeout": Timeout(MINUTE, {"choice": "continue"}), "expires": MINUTE},
            ["decisionInvalid"],
        ),
        ({"expires": MINUTE}, []),
        ({"expires": timedelta(0)}, ["decisionInvalid"]),
        ({"expires": 5}, ["expiresInvalid"]),
        ({"request": 1}, ["callbackInvalid"]),
    ],
)
def test_mistakes_in_a_human_decision(parts: dict[str, Any], found: list[str]) -> None:
    """Whom it asks, for what, and what ends it, are checked together."""
    given = {"audience": "operator", "choices": CHOICES, "request": asked, **parts}
    assert codes(make_human(**given)) == found


def test_an_underscore_at_the_end_is_no_part_of_a_choice() -> None:
    """Words of Python can be choices: `continue_` is `continue`."""
    assert [each.id for each in CHOICES.choices] == ["continue", "replan"]


PICK = decision(choices=("y", "n"), question="?", field="way")
END = compute(lambda ctx: ctx.run_id)


@pytest.mark.parametrize(
    ("node", "way", "found"),
    [
        (PICK, decision_edge("a", cases={"y": "b", "n": "b"}), []),
        (PICK, decision_edge("a", cases={"y": "b"}), ["switchCaseMissing"]),
        (PICK, decision_edge("a", cases={"y": "b", "n": "b", "x": "b"}), ["switchCaseImpossible"]),
        (PICK, switch("a", on="$.way", cases={"y": "b"}), ["switchCaseMissing"]),
        (PICK, switch("a", on="$.other", cases={"z": "b"}), []),
        (
            PICK,
            human_decision_edge("a", cases={"y": "b", "n": "b"}),
            ["decisionEdgeMisplaced", "nodeUnreachable"],
        ),
        (END, decision_edge("a", cases={"y": "b"}), ["decisionEdgeMisplaced", "nodeUnreachable"]),
        (PICK, make_decision_edge("a", cases=1), ["switchCaseInvalid", "nodeUnreachable"]),
        (
            PICK,
            decision_edge("z", cases={"y": "b"}),
            ["edgeSourceUnknown", "nodeUnreachable"],
        ),
    ],
)
def test_an_edge_of_a_decision_names_every_choice(
    node: object, way: object, found: list[str]
) -> None:
    """A missing and an extra case fail at the definition, in either way of writing."""
    assert codes(node, ("b", END), edges=[way]) == found


def test_a_person_s_choices_are_cases_too() -> None:
    """The edge of a human decision looks at its choice."""
    node = human_decision(audience="operator", choices=CHOICES, request=asked)
    ways = [human_decision_edge("a", cases={"continue": "b", "stop": "b"})]
    found = problems_of(node, ("b", END), edges=ways)
    assert [str(problem) for problem in found] == [
        "edges.a: add a case for replan",
        "edges.a: case 'stop': the choices are continue, replan",
    ]


@pytest.mark.parametrize("name", ["b", "nothing", 1])
def test_an_approval_names_a_human_decision(name: Any) -> None:
    """An action can only be approved by a node that asks a person."""
    node = make_action(told, effect=idempotent_effect("x"), approved_by=name)
    found = codes(node, ("b", END), edges=[edge("a", "b")])
    assert found == (["nameInvalid"] if name == 1 else ["approvalUnknown"])


def test_a_control_loop_is_ordinary_edges() -> None:
    """A choice leads to its branch, every branch back, and a name out of the loop."""
    loop = control_loop(
        decide="decide",
        return_to="look",
        routes={"work": branch("work", returns=["work"]), "done": "end"},
    )
    assert loop.choices == ("work", "done")
    workflow = define_workflow(
        "sample",
        input=Task,
        start="look",
        nodes={
            "look": compute(told),
            "decide": decision(choices=loop.choices, question=told),
            "work": agent(prompt=told, output="what was done"),
            "end": END,
        },
        edges=[edge("look", "decide"), *loop.edges],
    )
    assert [each.model_dump(exclude_none=True) for each in workflow.snapshot.edges] == [
        {"source": "decide", "on": "$.route", "cases": {"work": "work", "done": "end"}},
        {"source": "look", "to": "decide"},
        {"source": "work", "to": "look"},
    ]


@pytest.mark.parametrize(
    ("routes", "found"),
    [
        ({"x": branch("b", returns=[])}, ["loopReturnMissing"]),
        ({"x": branch("b", returns=["a"])}, ["loopReturnInvalid"]),
        (
            {"x": branch("b", returns=["b"]), "y": branch("b", returns=["b"])},
            ["loopReturnTwice"],
        ),
        ({}, ["switchCasesMissing", "nodeUnreachable"]),
        ({"x": 1}, ["edgeInvalid", "switchCasesMissing", "nodeUnreachable"]),
    ],
)
def test_mistakes_in_a_control_loop(routes: dict[str, Any], found: list[str]) -> None:
    """A branch comes back, from points of its own."""
    loop = make_loop(decide="a", return_to="a", routes=routes)
    assert codes(compute(told), ("b", END), edges=loop.edges) == found


def test_a_workflow_s_presentation_is_text() -> None:
    """How the end is presented is said in words, not in code."""
    assert codes(END, presentation=print) == ["presentationInvalid"]
    assert codes(END, presentation=" ") == ["presentationInvalid"]
