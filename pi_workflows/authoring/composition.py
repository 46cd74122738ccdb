"""Including a workflow in another one: what authors write, and how they read what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.context import Context
from pi_workflows.authoring.declared import declared_model, function_problems
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.base.errors import NotFound, PayloadInvalid, Problem
from pi_workflows.base.limits import PATH_BYTES_MAX
from pi_workflows.definition.paths import is_contract_id

if TYPE_CHECKING:
    from pi_workflows.authoring.workflow import Workflow

InputT = TypeVar("InputT", bound=BaseModel)

# Plain (run in a thread) or async; what it returns is checked against the included input's model.
InputFunction: TypeAlias = Callable[[Context[Any]], object]


@dataclass(frozen=True, eq=False)
class Include:
    """What `include` returns: a workflow, or how to find it, and what its input is made of.

    Attributes:
        workflow: The workflow; None until its reference is resolved.
        reference: A name, `builtin:` and a name, or the path of a file; None for a workflow.
        function: Makes the input from the including workflow's context; None for an empty one.
        contract_id: The contract that the workflow has to declare.
        problems: Mistakes that the constructor found.
    """

    workflow: Workflow[BaseModel] | None
    reference: str | None
    function: InputFunction | None
    contract_id: str | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, eq=False)
class Exit:
    """What `exit` returns: one way out of a workflow that others include.

    Attributes:
        node: The name of the node that it ends with, or an exit of an included workflow.
        output: The model of what it gives; None leaves it to the node.
        problems: Mistakes that the constructor found.
    """

    node: str
    output: OutputModel | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class IncludedResult:
    """How an included workflow was left.

    Attributes:
        exit: The name of the exit.
        output: What it gave: an instance of the exit's model when it has one, else JSON.
    """

    exit: str
    # Every exit has a type of its own; a type checker learns it from an `isinstance`.
    output: Any


def include(
    workflow: Workflow[InputT] | str,
    *,
    input: Callable[[Context[Any]], object] | None = None,  # noqa: A002 - what authors call it
    contract_id: str | None = None,
) -> Include:
    """Make a workflow a part of another one, which gives it a name in `includes`.

    Args:
        workflow: A workflow, or a reference: a name as `pi-workflows start` takes it, `builtin:`
            and a name, or the path of a file from the including file's directory. References are
            resolved when the workflow is loaded, before a run starts.
        input: Makes the input of each invocation from this workflow's context: an instance of the
            included workflow's input model, or its members. It may run again after a crash, so it
            changes nothing outside and gives the same for the same context. By default the input
            has no members.
        contract_id: The contract that the workflow has to declare; a file that was put in its place
            and declares another one is refused.

    Returns:
        The inclusion. An edge leads to its name, and on from its exits: `name.exit`.
    """
    from pi_workflows.authoring.workflow import Workflow  # noqa: PLC0415 - it includes others

    given = cast("object", workflow)
    problems = [*_reference_problems(given)] if not isinstance(given, Workflow) else []
    if input is not None:
        problems.extend(function_problems(input, "input"))
    contract = cast("object", contract_id)
    if contract is not None and not (isinstance(contract, str) and is_contract_id(contract)):
        problems.append(
            Problem("contractIdInvalid", "", f"contract_id={contract!r:.60}: use a contract's name")
        )
    return Include(
        workflow=cast("Workflow[BaseModel]", given) if isinstance(given, Workflow) else None,
        reference=given if isinstance(given, str) else None,
        function=input,
        contract_id=contract if isinstance(contract, str) else None,
        problems=tuple(problems),
    )


def exit(node: str, *, output: type[BaseModel] | None = None) -> Exit:  # noqa: A001 - what authors call it
    """Make an exit of a workflow that others include, which gives it a name in `exits`.

    Args:
        node: The name of a node that no edge leaves; or `name.exit`, an exit of an included
            workflow that no edge leaves.
        output: The model of what the exit gives; the node has the same one. By default the node's.

    Returns:
        The exit. What the including workflow reads is `{"exit": name, "output": ...}`.
    """
    problems: list[Problem] = []
    given = cast("object", node)
    if not isinstance(given, str):
        problems.append(Problem("exitNodeUnknown", "", f"{given!r:.60} is no name of a node"))
    if output is not None and declared_model(output) is None:
        problems.append(
            Problem("outputNotModel", "", f"output is {output!r:.60}: use a pydantic model class")
        )
    return Exit(
        node=given if isinstance(given, str) else "",
        output=declared_model(output),
        problems=tuple(problems),
    )


def included_result(workflow: Workflow[InputT], value: Mapping[str, Any]) -> IncludedResult:
    """Read what an included workflow gave, with the types that its exits declare.

    Args:
        workflow: The included workflow.
        value: What stands under its name, `ctx.outputs["name"]`.

    Returns:
        The exit, and its output.

    Raises:
        PayloadInvalid: The value is none of an exit (`resultInvalid`), or its output does not fit
            (`outputInvalid`).
        NotFound: The workflow has no such exit (`exitUnknown`).
    """
    given = cast("object", value)
    if not isinstance(given, Mapping) or set(value) != {"exit", "output"}:
        raise PayloadInvalid(
            "included_result: this is no result of an included workflow: pass ctx.outputs[name]",
            code="resultInvalid",
        )
    name = str(value["exit"])
    if name not in workflow.exits:
        raise NotFound(f"included_result: {workflow.name} has no exit {name!r}", code="exitUnknown")
    model = workflow.exit_model(name)
    output: object = value["output"]
    if model is not None:
        output = model.value(value["output"], field=f"{name}.output")
    return IncludedResult(name, output)


def _reference_problems(reference: object) -> Iterator[Problem]:
    if not isinstance(reference, str):
        yield Problem(
            "includeInvalid",
            "",
            f"{reference!r:.60} is no workflow: pass one, or its name or file as text",
        )
    elif not reference.strip() or "\0" in reference or len(reference.encode()) > PATH_BYTES_MAX:
        yield Problem("includeInvalid", "", f"{reference!r:.60} is no name or path of a workflow")
