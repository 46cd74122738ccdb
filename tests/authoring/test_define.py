"""Defining a workflow: what is sound, and everything that is not, reported at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, computed_field

from pi_workflows import (
    ActionContext,
    Command,
    Context,
    Problem,
    ProblemsFound,
    Retry,
    Workflow,
    action,
    checkpoint,
    compute,
    define_workflow,
    edge,
    idempotent_effect,
    manual_effect,
    shell,
    switch,
)
from pi_workflows.authoring.commands import ShellResult
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.definition.snapshot import SHELL_RESULT_MODEL

# Authors make mistakes that a checker would show them; these tests make them on purpose.
define: Callable[..., Workflow[Any]] = define_workflow
make_compute: Callable[..., Any] = compute
make_action: Callable[..., Any] = action
make_shell: Callable[..., Any] = shell
make_checkpoint: Callable[..., Any] = checkpoint
make_switch: Callable[..., Any] = switch
make_edge: Callable[..., Any] = edge


def make_retry(**parts: Any) -> Retry:
    """Make a retry of parts that may have wrong types."""
    return Retry(**parts)


make_effect: Callable[..., Any] = idempotent_effect
READ = idempotent_effect("repo.read")


class Task(BaseModel):
    """An input."""

    repo: str


class Mood(Enum):
    """Values of a switch."""

    GOOD = "good"
    BAD = "bad"


class Inner(BaseModel):
    """A nested part of an output."""

    mood: Mood
    sure: bool | None = None


class Review(BaseModel):
    """An output that switches look at."""

    route: Literal["clean", "issues"]
    count: int = 0
    inner: Inner


class Loose(BaseModel):
    """An output with more members than its fields."""

    @computed_field
    def extra(self) -> str:
        """A member that only the JSON has."""
        return "x"


def one(ctx: Context[Task]) -> int:
    """Compute something."""
    return len(ctx.input.repo)


def act(ctx: ActionContext[Task]) -> str:
    """Apply something."""
    return ctx.effect_key


def of_other(ctx: Context[Review]) -> int:
    """Compute something of another workflow's input."""
    return ctx.input.count


def problems_of(**changes: object) -> list[Problem]:
    """Return what is wrong with a definition that is sound but for the changes."""
    parts: dict[str, Any] = {
        "name": "sample",
        "input": Task,
        "start": "a",
        "nodes": {"a": compute(one)},
        "edges": [],
    }
    try:
        define(**{**parts, **changes})
    except ProblemsFound as error:
        return list(error.problems)
    return []


def only(**changes: object) -> tuple[str, str, str]:
    """Return the one problem of a definition with the changes."""
    problems = problems_of(**changes)
    assert len(problems) == 1, problems
    return problems[0].code, problems[0].where, problems[0].message


def reviewed(on: str, cases: dict[Any, str]) -> dict[str, object]:
    """A definition whose first node has a model and a switch on it."""
    nodes = {name: compute(one) for name in cases.values()}
    return {
        "nodes": {"a": make_compute(one, output=Review), **nodes},
        "edges": [make_switch("a", on=on, cases=cases)],
    }


def test_a_sound_definition_has_no_problem() -> None:
    """The definition that the other tests break is sound."""
    assert problems_of() == []


def test_a_workflow_with_three_mistakes_reports_three() -> None:
    """All mistakes come in one error: wrong values, missing declarations and a broken graph."""
    with pytest.raises(ProblemsFound) as refused:
        define(
            "Sample!",
            input=Task,
            start="a",
            nodes={"a": make_action(act)},
            edges=[edge("a", "b")],
        )
    assert refused.value.reason_code == "definitionInvalid"
    codes = {problem.code for problem in refused.value.problems}
    assert codes == {"nameInvalid", "effectMissing", "edgeTargetUnknown"}
    assert len(refused.value.problems) == 3
    for part in ("name: ", "nodes.a: effect is missing", "edges.a: leads to 'b'"):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "code", "where", "message"),
    [
        ({"name": "A"}, "nameInvalid", "name", "lower-case"),
        ({"name": 1}, "nameInvalid", "name", "use text"),
        ({"name": "x" * 65}, "nameInvalid", "name", "1-64"),
        ({"name": "pause"}, "nameReserved", "name", "choose another"),
        ({"input": dict}, "inputNotModel", "input", "pydantic.BaseModel"),
        ({"input": 1}, "inputNotModel", "input", "pydantic.BaseModel"),
        ({"start": "b"}, "startUnknown", "start", "no node is called 'b'"),
        ({"max_steps": 0}, "maxStepsInvalid", "max_steps", "1 to 1,000,000"),
        ({"max_steps": 2.0}, "maxStepsInvalid", "max_steps", "whole number"),
        ({"max_steps": True}, "maxStepsInvalid", "max_steps", "whole number"),
        ({"contract_id": "-x"}, "contractIdInvalid", "contract_id", "letter or digit first"),
        ({"contract_id": 3}, "contractIdInvalid", "contract_id", "use text"),
        ({"title": ""}, "titleInvalid", "title", "200"),
        ({"title": 3}, "titleInvalid", "title", "function of the input"),
        ({"nodes": {}, "start": "a"}, "nodesMissing", "nodes", "at least one"),
        ({"nodes": {"a": one}}, "nodeInvalid", "nodes.a", "make one with agent"),
        ({"edges": "a"}, "edgeInvalid", "edges", "list of edge"),
        ({"edges": [("a", "b")]}, "edgeInvalid", "edges", "use edge(...)"),
    ],
)
def test_mistakes_in_the_call(
    changes: dict[str, object], code: str, where: str, message: str
) -> None:
    """Each argument of define_workflow is judged by itself."""
    found = problems_of(**changes)
    assert (found[0].code, found[0].where) == (code, where)
    assert message in found[0].message


@pytest.mark.parametrize("name", ["1a", "a b", "", "__piw_enter", "a/b/", "n" * 101, "ä"])
def test_bad_node_names(name: str) -> None:
    """A node's name is an identifier with hyphens; the engine's own prefix is reserved."""
    code, where, message = only(nodes={name: compute(one)}, start=name)
    assert (code, where) == ("nodeNameInvalid", f"nodes.{name}")
    assert "'__piw_'" in message


@pytest.mark.parametrize(
    ("node", "code", "message"),
    [
        (make_compute("text"), "callbackInvalid", "use a function"),
        (make_compute(lambda: 1), "callbackInvalid", "exactly one argument"),
        (make_compute(one, output=dict), "outputNotModel", "pydantic model class"),
        (make_compute(one, status_detail="x" * 201), "statusDetailInvalid", "200"),
        (make_compute(one, timeout=3), "timeoutInvalid", "timedelta"),
        (compute(one, timeout=timedelta(0)), "timeoutInvalid", "positive"),
        (compute(one, timeout=timedelta(seconds=-1)), "timeoutInvalid", "positive"),
        (compute(one, timeout=timedelta(days=31)), "timeoutInvalid", "30 days"),
        (make_compute(one, timeout=lambda: None), "callbackInvalid", "timeout takes"),
        (compute(one, retry=Retry(max_attempts=0)), "retryInvalid", "1 to 1,000"),
        (compute(one, retry=Retry(on=())), "retryInvalid", "each once"),
        (make_compute(one, retry=make_retry(on="failed")), "retryInvalid", "Retry(max_attempts"),
        (make_compute(one, retry=make_retry(on=("ok",))), "retryInvalid", "Retry(max_attempts"),
        (make_compute(one, retry=make_retry(delay=3)), "retryInvalid", "Retry(max_attempts"),
        (make_compute(one, retry=3), "retryInvalid", "Retry(max_attempts"),
        (compute(one, retry=Retry(delay=timedelta(days=8))), "retryInvalid", "7 days"),
        (compute(one, retry=Retry(delay=timedelta(seconds=-1))), "retryInvalid", "7 days"),
        (compute(one, retry=Retry(backoff=0.5)), "retryInvalid", "backoff=0.5"),
        (compute(one, retry=Retry(backoff=float("nan"))), "retryInvalid", "Retry(max_attempts"),
        (make_action(act), "effectMissing", "idempotent_effect('type')"),
        (make_action(act, effect="repo.read"), "effectMissing", "manual_effect('type')"),
        (action(act, effect=idempotent_effect("")), "effectTypeInvalid", "1 to 256"),
        (action(act, effect=manual_effect("x" * 257)), "effectTypeInvalid", "1 to 256"),
        (action(act, effect=manual_effect("mail"), retry=Retry()), "retryManualEffect", "drop"),
        (make_action(act, effect=READ, request=1), "callbackInvalid", "request is 1"),
        (make_shell(["git"], effect=READ), "commandInvalid", "Command([...])"),
        (make_shell(lambda: Command(["x"]), effect=READ), "callbackInvalid", "the command's"),
        (make_action(act, effect=make_effect(3)), "effectTypeInvalid", "use text"),
        (shell(Command([]), effect=READ), "commandInvalid", "at least the program"),
        (make_shell(Command("git"), effect=READ), "commandInvalid", "list of texts"),
        (make_shell(Command(["git"])), "effectMissing", "idempotent_effect('type')"),
        (make_shell(Command(["git"]), effect=READ, output=Review), "outputNotModel", "parse"),
        (make_shell(Command(["git"]), effect=READ, parse=1), "callbackInvalid", "parse is 1"),
        (make_shell(Command(["git"]), effect=READ, updates=1), "callbackInvalid", "updates"),
        (checkpoint(""), "summaryInvalid", "1,000"),
        (make_checkpoint("Go?", output=str), "outputNotModel", "pydantic model class"),
        (make_checkpoint("Go?", run=1), "callbackInvalid", "run is 1"),
        (compute(of_other), "contextInputMismatch", "Context[Review]"),
    ],
)  # fmt: skip
def test_mistakes_in_a_node(node: Any, code: str, message: str) -> None:
    """What a constructor finds is reported under the node's name, and does not raise before."""
    found = only(nodes={"a": node})
    assert found[:2] == (code, "nodes.a")
    assert message in found[2]


@pytest.mark.parametrize(
    ("edges", "code", "where", "message"),
    [
        ([edge("a", "c")], "edgeTargetUnknown", "edges.a", "'c'"),
        ([edge("x", "a")], "edgeSourceUnknown", "edges.x", "no node is called 'x'"),
        ([edge("a", "b"), edge("a", "a")], "edgeTwice", "edges.a", "use switch"),
        ([make_edge("a", 1)], "edgeInvalid", "edges.a", "by name"),
        ([make_edge("a", "b", delay=5)], "edgeDelayInvalid", "edges.a", "delay is 5: use a time"),
        ([edge("a", "b", delay="ms")], "edgeDelayInvalid", "edges.a", "write '$.field'"),
        ([edge("a", "b", delay=timedelta(0))], "edgeDelayInvalid", "edges.a", "at most 7 days"),
        ([make_switch("a", on="route", cases={"x": "b"})], "switchPathInvalid", "edges.a", "$.f"),
        ([make_switch("a", on=1, cases={"x": "b"})], "switchPathInvalid", "edges.a", "$.field"),
        ([switch("a", on="$.r", cases={})], "switchCasesMissing", "edges.a", "no case"),
        ([make_switch("a", on="$.r", cases=["b"])], "switchCaseInvalid", "edges.a", "maps"),
        ([make_switch("a", on="$.r", cases={(): "b"})], "switchCaseInvalid", "edges.a", "text"),
        (
            [make_switch("a", on="$.r", cases={float("nan"): "b"})],
            "switchCaseInvalid",
            "edges.a",
            "text",
        ),
        (
            [make_switch("a", on="$.r", cases={True: "b", "true": "a"})],
            "switchCaseTwice",
            "edges.a",
            "twice",
        ),
        ([make_switch("a", on="$.r", cases={1: "b", "x": 2})], "edgeInvalid", "edges.a", "name"),
        (
            [switch("a", on="$result.outcome", cases={"ok": "b", "cancelled": "a"})],
            "switchCaseCancelled",
            "edges.a",
            "drop it",
        ),
        (
            [switch("a", on="$result.outcome", cases={"ok": "b", "error": "a"})],
            "switchOutcomeUnknown",
            "edges.a",
            "'timed_out'",
        ),
        ([], "nodeUnreachable", "nodes.b", "no edge leads here from 'a'"),
    ],
)
def test_mistakes_in_edges(edges: list[Any], code: str, where: str, message: str) -> None:
    """Edges lead from known nodes to known ones, once, by paths and cases that can be compared."""
    nodes = {"a": compute(one), "b": compute(one)}
    problems = problems_of(nodes=nodes, edges=edges)
    found = [problem for problem in problems if problem.code == code]
    assert len(found) == 1, problems
    assert found[0].where == where
    assert message in found[0].message
    # The mistake may leave b without a way in; nothing else follows from it.
    assert {problem.code for problem in problems} <= {code, "nodeUnreachable"} | (
        {"switchCasesMissing"} if "Case" in code or code == "edgeInvalid" else set()
    )


@pytest.mark.parametrize(
    ("on", "cases", "code", "message"),
    [
        ("$.rout", {"clean": "b"}, "switchFieldUnknown", "did you mean 'route'?"),
        ("$.inner.nothing", {"x": "b"}, "switchFieldUnknown", "Inner has no field"),
        ("$.route", {"clean": "b"}, "switchCaseMissing", "$.route may also be issues"),
        (
            "$.route",
            {"clean": "b", "issues": "c", "issue": "d"},
            "switchCaseImpossible",
            "clean, issues",
        ),
        ("$.inner.mood", {"good": "b"}, "switchCaseMissing", "bad"),
        ("$.inner.sure", {True: "b", False: "c"}, "switchCaseMissing", "null"),
    ],
)
def test_a_switch_must_fit_the_output_model(
    on: str, cases: dict[Any, str], code: str, message: str
) -> None:
    """A field that the model lacks, a case it cannot have and one that is missing are mistakes."""
    found = only(**reviewed(on, cases))
    assert found[:2] == (code, "edges.a")
    assert message in found[2]


@pytest.mark.parametrize(
    ("on", "cases"),
    [
        ("$.route", {"clean": "b", "issues": "c"}),
        ("$.inner.mood", {Mood.GOOD.value: "b", "bad": "c"}),
        ("$.inner.sure", {True: "b", False: "c", None: "d"}),
        ("$.count", {0: "b", 17: "c"}),
        ("$.inner.mood.deeper", {"x": "b"}),
        ("$result.outcome", {"failed": "b"}),
    ],
)
def test_a_switch_that_fits_is_sound(on: str, cases: dict[Any, str]) -> None:
    """Only what the model proves wrong is reported."""
    assert problems_of(**reviewed(on, cases)) == []


def test_nothing_is_said_about_members_that_only_the_json_has() -> None:
    """A model with computed fields may hold any member."""
    nodes = {"a": make_compute(one, output=Loose), "b": compute(one)}
    assert problems_of(nodes=nodes, edges=[switch("a", on="$.extra", cases={"x": "b"})]) == []


def test_a_definition_has_a_size() -> None:
    """A snapshot that would not fit a frame beside its input is refused."""
    count = 384
    nodes = {f"n{i}": checkpoint("x" * 1_000) for i in range(count)}
    edges = [edge(f"n{i}", f"n{i + 1}") for i in range(count - 1)]
    code, _, message = only(nodes=nodes, edges=edges, start="n0")
    assert code == "definitionTooLarge"
    assert "393,216" in message


def test_a_definition_is_json() -> None:
    """Text that no other reader could read is refused with its place."""
    code, where, message = only(nodes={"a": compute(one, status_detail="half \ud83d")})
    assert code == "definitionNotJson"
    assert where == "definition.nodes.a.statusDetail"
    assert "surrogate" in message


def test_problems_are_bounded() -> None:
    """Hundreds of mistakes come as 200 and a count."""
    problems = problems_of(edges=[edge(f"x{i}", "a") for i in range(500)])
    assert len(problems) == 201
    assert problems[-1].message == "and 300 more problems"


def test_a_loop_without_an_end_is_sound() -> None:
    """`max_steps` stops a loop; the graph need not."""
    nodes = {"a": compute(one), "b": compute(one)}
    assert problems_of(nodes=nodes, edges=[edge("a", "b"), edge("b", "a")]) == []


def test_the_order_of_writing_changes_no_digest() -> None:
    """Nodes and edges are sets: reordering them is the same definition."""
    nodes = {"a": compute(one), "b": compute(one)}
    edges = [edge("a", "b"), switch("b", on="$.x", cases={"p": "a", "q": "b"})]
    turned = [switch("b", on="$.x", cases={"q": "b", "p": "a"}), edge("a", "b")]
    first = define("w", input=Task, start="a", nodes=nodes, edges=edges)
    second = define("w", input=Task, start="a", nodes=dict(reversed(nodes.items())), edges=turned)
    assert first.digest == second.digest


def test_the_snapshot_shows_what_is_no_code() -> None:
    """Effects, retries, limits and model names are in the snapshot; functions are not."""
    workflow = define_workflow(
        "sample",
        input=Task,
        start="look",
        nodes={
            "look": shell(
                lambda ctx: Command(["git", "log"], cwd=ctx.input.repo),
                effect=READ,
                timeout=timedelta(milliseconds=1.5),
                retry=Retry(max_attempts=2, on=("failed",), delay=timedelta(seconds=1), backoff=2),
            ),
            "ask": checkpoint("Go on?", output=Review),
            "last": compute(one, timeout=None, status_detail="counting"),
            "computed": compute(one, timeout=lambda ctx: timedelta(seconds=len(ctx.input.repo))),
        },
        edges=[edge("look", "ask"), edge("ask", "last"), edge("last", "computed")],
        max_steps=7,
    )
    assert workflow.snapshot.document() == {
        "schema": "pi-workflows.definition-snapshot.v1",
        "name": "sample",
        "inputModel": f"{__name__}.Task",
        "startAt": "look",
        "maxSteps": 7,
        "mounts": [],
        "nodes": {
            "look": {
                "type": "action",
                "actionForm": "shell",
                "timeoutMs": 2,
                "effect": {"type": "repo.read", "recovery": "idempotent"},
                "retry": {"maxAttempts": 2, "on": ["failed"], "delayMs": 1000, "backoff": 2.0},
                "outputModel": "pi_workflows.authoring.commands.ShellResult",
            },
            "ask": {
                "type": "checkpoint",
                "summary": "Go on?",
                "timeoutMs": 900_000,
                "outputModel": f"{__name__}.Review",
            },
            "last": {"type": "compute", "timeoutMs": 0, "statusDetail": "counting"},
            "computed": {"type": "compute"},
        },
        "edges": [
            {"from": "ask", "to": "last"},
            {"from": "last", "to": "computed"},
            {"from": "look", "to": "ask"},
        ],
    }


def test_the_model_of_a_commands_own_result_is_known_by_name() -> None:
    """The server tells it from an author's models without loading any code."""
    assert OutputModel.of(ShellResult).name == SHELL_RESULT_MODEL
