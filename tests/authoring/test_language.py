"""The constructors of nodes: what they take from a function, and how values become JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

import pi_workflows
from pi_workflows import (
    Command,
    Context,
    Json,
    ShellResult,
    action,
    checkpoint,
    compute,
    define_workflow,
    idempotent_effect,
    manual_effect,
    shell,
)
from pi_workflows.authoring.nodes import ComputeNode, Node
from pi_workflows.authoring.policies import computed_timeout_ms, fixed_timeout_ms
from pi_workflows.base.errors import PayloadInvalid, ProblemsFound

if TYPE_CHECKING:
    from fractions import Fraction

READ = idempotent_effect("repo.read")


class Part(BaseModel):
    """A nested model."""

    size: int


class Review(BaseModel):
    """A model with an alias, whose JSON has the field's own name."""

    model_config = ConfigDict(populate_by_name=True)

    route: Literal["clean", "issues"]
    parts: list[Part] = Field(default=[], alias="pieces")


class Open(BaseModel):
    """A model that keeps what it does not know."""

    model_config = ConfigDict(extra="allow")


@dataclass
class Point:
    """A dataclass output."""

    x: int


def review(ctx: Context[Review]) -> Review:
    """Return a model."""
    return ctx.input


def points(ctx: Context[Review]) -> list[Point]:
    """Return dataclasses in a list."""
    return [Point(len(ctx.input.parts))]


async def later(ctx: Context[Review]) -> Review | None:
    """Return a model, or nothing."""
    return ctx.input


def plain(ctx: Context[Review]) -> dict[str, int]:
    """Return JSON."""
    return {"a": len(ctx.input.parts)}


def nested(ctx: Context[Review]) -> dict[str, Annotated[tuple[Part, ...], "few"] | Literal["x"]]:
    """Return a type with many parts."""
    return {"x": (Part(size=len(ctx.input.parts)),)}


def unresolved(ctx: Context[Review]) -> Fraction:
    """Return a type that exists for checkers only."""
    raise NotImplementedError(ctx)


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (compute(review), f"{__name__}.Review"),
        (compute(points), f"list[{__name__}.Point]"),
        (compute(later), f"{__name__}.Review | None"),
        (
            compute(nested),
            f"dict[str, tuple[{__name__}.Part, ...] | Literal['x']]",
        ),
        (compute(plain), None),
        (compute(unresolved), None),
        (compute(lambda ctx: ctx.input), None),
        (compute(plain, output=Part), f"{__name__}.Part"),
        (action(review, effect=READ), f"{__name__}.Review"),
        (shell(Command(["x"]), effect=READ), "pi_workflows.authoring.commands.ShellResult"),
        (shell(Command(["x"]), effect=READ, parse=lambda r: r.stdout), None),
        (shell(Command(["x"]), effect=READ, parse=lambda r: r, output=Part), f"{__name__}.Part"),
        (checkpoint("?", output=Part), f"{__name__}.Part"),
        (checkpoint("?"), None),
    ],
)
def test_the_output_model_comes_from_the_declaration(node: Node[object], name: str | None) -> None:
    """`output=` counts first, then a return annotation that names a model; JSON types name none."""
    assert (node.output.name if node.output is not None else None) == name


def test_decorators_make_nodes() -> None:
    """Both forms of a constructor make the same node."""

    @compute(status_detail="reading", timeout=timedelta(seconds=1))
    def one(ctx: Context[Review]) -> int:
        return len(ctx.input.parts)

    @action(effect=manual_effect("mail.send"))
    async def two(ctx: Context[Review]) -> str:
        return ctx.run_id

    @compute(output=Part)
    def three(ctx: Context[Review]) -> dict[str, int]:
        return {"size": len(ctx.input.parts)}

    assert isinstance(one, ComputeNode)
    assert one.status_detail == "reading"
    assert two.effect == manual_effect("mail.send")
    assert three.output is not None
    assert (one.problems, two.problems, three.problems) == ((), (), ())


def test_outputs_become_json() -> None:
    """Models, dataclasses and plain values become the JSON that is stored, by field names."""
    value = Review(route="clean", pieces=[Part(size=1)])
    stored: Json = {"route": "clean", "parts": [{"size": 1}]}
    assert compute(review).output_json(value) == stored
    assert compute(lambda ctx: ctx.input).output_json(value) == stored
    assert compute(points).output_json([Point(2)]) == [{"x": 2}]
    assert compute(later).output_json(None) is None
    assert compute(plain).output_json({"a": 1}) == {"a": 1}
    assert compute(review).output_value(stored) == value
    assert compute(points).output_value([{"x": 2}]) == [Point(2)]


def test_an_output_that_does_not_fit_names_its_fields() -> None:
    """Each part of a returned value that does not fit is named by its path."""
    with pytest.raises(ProblemsFound) as error:
        compute(review).output_json({"route": "dirty", "parts": [{"size": "x"}]})
    assert [problem.where for problem in error.value.problems] == [
        "output.route",
        "output.parts[0].size",
    ]
    assert error.value.reason_code == "outputInvalid"


def test_an_answer_is_judged_by_its_model() -> None:
    """An answer is coerced and completed as the model says; typing mistakes are refused."""
    node = checkpoint("Which?", output=Review)
    assert node.accept_answer({"route": "clean"}) == {"route": "clean", "parts": []}
    with pytest.raises(ProblemsFound) as error:
        node.accept_answer({"route": "clean", "rout": 1, "parts": [{"size": 1, "sice": 2}]})
    assert [str(problem) for problem in error.value.problems] == [
        "answer.parts[0].sice: unknown field: remove it",
        "answer.rout: unknown field: remove it",
    ]
    assert checkpoint("Which?").accept_answer([1, None]) == [1, None]
    assert checkpoint("Which?", output=Open).accept_answer({"more": 1}) == {"more": 1}


def test_shell_results_are_camel_case() -> None:
    """A command's result has the names that switches and other readers know."""
    node = shell(Command(["x"]), effect=READ)
    result = ShellResult(command=("x",), cwd="/p", exit_code=0, duration_ms=5, stdout="", stderr="")
    stored = node.output_json(result)
    assert isinstance(stored, dict)
    assert stored["exitCode"] == 0
    assert stored["stdoutTruncated"] is False
    assert node.output_value(stored) == result


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (Command(["git", "log"]), None),
        (Command(("git",), cwd="/p", env={"A": "b", "C": None}, stdin="x"), None),
        (Command([""]), "has a name"),
        (Command(["a\0b"]), "NUL"),
        (Command(["git", 1]), "only texts"),  # type: ignore[list-item]
        (Command(b"git"), "list of texts"),  # type: ignore[arg-type]
        (Command(["git"], cwd=1), "cwd is a path"),  # type: ignore[arg-type]
        (Command(["git"], env={"A=": "b"}), "without '='"),
        (Command(["git"], env={"A": 1}), "to texts"),  # type: ignore[dict-item]
        (Command(["git"], env=["A"]), "to texts"),  # type: ignore[arg-type]
        (Command(["git"], stdin=b""), "stdin is text"),  # type: ignore[arg-type]
    ],
)
def test_commands_say_what_is_wrong_with_them(command: Command, fault: str | None) -> None:
    """A command is checked as a whole before a process is started."""
    found = command.fault()
    assert (found is None) == (fault is None)
    assert fault is None or fault in (found or "")


def test_timeouts_are_active_milliseconds() -> None:
    """None is unlimited, a fraction counts as a whole millisecond, a function is asked later."""
    assert fixed_timeout_ms(None) == 0
    assert fixed_timeout_ms(timedelta(microseconds=1)) == 1
    assert fixed_timeout_ms(timedelta(minutes=15)) == 900_000
    assert fixed_timeout_ms(lambda ctx: ctx.input) is None
    assert computed_timeout_ms(None) == 0
    assert computed_timeout_ms(timedelta(seconds=2)) == 2_000


@pytest.mark.parametrize("value", [3, "1s", timedelta(0), timedelta(days=31)])
def test_a_computed_timeout_is_checked(value: Any) -> None:
    """What a timeout function returns is held to the same bounds as a fixed timeout."""
    with pytest.raises(PayloadInvalid, match="timeout=") as error:
        computed_timeout_ms(value)
    assert error.value.reason_code == "timeoutInvalid"


def test_inputs_round_trip() -> None:
    """A stored input gives the same instance again; unknown members are refused on the way in."""
    workflow = define_workflow("w", input=Review, start="a", nodes={"a": compute(plain)})
    value = workflow.accept_input({"route": "clean", "pieces": [{"size": 1}]})
    stored = workflow.input_json(value)
    assert stored == {"route": "clean", "parts": [{"size": 1}]}
    assert workflow.input_value(stored) == value
    with pytest.raises(ProblemsFound, match=r"input\.x: unknown field"):
        workflow.accept_input({"route": "clean", "x": 1})


def test_the_public_names_are_complete() -> None:
    """Every public name exists, is listed once, and nothing else answers."""
    assert pi_workflows.__all__ == sorted(set(pi_workflows.__all__), key=pi_workflows.__all__.index)
    for name in pi_workflows.__all__:
        assert getattr(pi_workflows, name) is not None
    assert set(pi_workflows.__all__) <= set(dir(pi_workflows))
    with pytest.raises(AttributeError, match="no attribute 'robot'"):
        _ = pi_workflows.robot
