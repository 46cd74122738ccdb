"""From an author's nodes and edges to a sound definition, or to everything that is wrong."""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Final, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.cases import case_problems
from pi_workflows.authoring.composition import Exit, Include
from pi_workflows.authoring.context import Context
from pi_workflows.authoring.declared import text_problems
from pi_workflows.authoring.edges import Way
from pi_workflows.authoring.failures import bounded
from pi_workflows.authoring.flattening import declared_problems, flattened
from pi_workflows.authoring.nodes import (
    NODE_CLASSES,
    ActionNode,
    AgentNode,
    AnyNode,
    CheckpointNode,
    ComputeNode,
    HumanDecisionNode,
    Node,
    NotifyNode,
    ShellNode,
)
from pi_workflows.authoring.outputs import qualified_name
from pi_workflows.authoring.policies import (
    Effect,
    TimeLimit,
    fixed_timeout_ms,
    retry_policy,
    timeout_problems,
)
from pi_workflows.authoring.settings import Settings
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base import canonical
from pi_workflows.base.errors import PayloadInvalid, Problem, ProblemsFound
from pi_workflows.base.limits import (
    DEFINITION_BYTES_MAX,
    EXPECTED_OUTPUT_CHARS_MAX,
    STEPS_DEFAULT,
    TITLE_CHARS_MAX,
)
from pi_workflows.definition import snapshot as model
from pi_workflows.definition.graph import snapshot_problems
from pi_workflows.definition.settings import SettingsPolicy

InputT = TypeVar("InputT", bound=BaseModel)
PartT = TypeVar("PartT")

# What the graph's own checks say of a name that stands for nothing.
_UNKNOWN: Final = ("edgeSourceUnknown", "edgeTargetUnknown")


def define_workflow(
    name: str,
    *,
    input: type[InputT],  # noqa: A002 - what authors call it
    start: str,
    nodes: Mapping[str, Node[object]],
    edges: Iterable[Way] = (),
    max_steps: int = STEPS_DEFAULT,
    contract_id: str | None = None,
    title: str | Callable[[InputT], str] | None = None,
    presentation: str | None = None,
    includes: Mapping[str, Include] | None = None,
    exits: Mapping[str, Exit] | None = None,
    settings: Settings[BaseModel] | None = None,
) -> Workflow[InputT]:
    """Define a workflow; a workflow file binds the result to `workflow`.

    Args:
        name: 1-64 lower-case letters, digits and hyphens; commands' names are reserved.
        input: The pydantic model of the run's input.
        start: The name of the first node.
        nodes: The nodes by name: letters, digits, `_` and `-`, at most 100 characters.
        edges: At most one out of each node; a node without one ends the run with its output.
        max_steps: Node attempts that a run may start, retries included; then it fails.
        contract_id: What an including workflow may ask for.
        title: A run's title, or a function that makes one of the input, at most 200 characters.
        presentation: How the session that started a run is told to present its end, in words.
        includes: The included workflows by name, each made with `include`. An edge leads to the
            name, and on from the workflow's exits: `edge("name.exit", "next")`.
        exits: The ways out for workflows that include this one, each made with `exit`.
        settings: What people may change about a run while it goes on, from `workflow_settings`.

    Returns:
        The definition. One that includes others by reference is complete once it is loaded.

    Raises:
        ProblemsFound: The definition has mistakes (`definitionInvalid`); all of them are in
            `problems`.
    """
    problems = [
        *_own_problems(name, input, max_steps, contract_id, title),
        *_text_needed("startUnknown", "start", start),
        *_presentation_problems(presentation),
    ]
    known = dict(_known_nodes(nodes, problems))
    ways = [*_known_edges(edges, problems)]
    chosen = [*_chosen_edges(ways, known, problems)]
    for path, node in known.items():
        problems.extend(_node_problems(path, node, input))
    own = _graph(known, chosen, name, start, max_steps).model_copy(
        update={
            "contract_id": _or(contract_id, None),
            "input_model": _model_name(input),
            "presentation": _or(presentation, None),
            "settings": _policies(settings, problems),
        }
    )
    workflow = Workflow(
        input_model=input,
        nodes=MappingProxyType(known),
        title=title,
        own=own,
        includes=MappingProxyType(dict(_known_parts(includes, Include, "includes", problems))),
        exits=MappingProxyType(dict(_known_parts(exits, Exit, "exits", problems))),
        file=_caller(),
        settings=settings if isinstance(settings, Settings) else None,
    )
    return _sound(workflow, problems)


def _sound(workflow: Workflow[InputT], problems: list[Problem]) -> Workflow[InputT]:
    """Return a workflow without problems; else raise ProblemsFound with these and its own."""
    problems.extend(declared_problems(workflow))
    if workflow.is_resolved and not any(problem.code == "mountTwice" for problem in problems):
        problems.extend(composed_problems(workflow, is_sound=not problems))
    if problems:
        raise ProblemsFound(bounded(problems))
    return workflow


def _policies(settings: object, problems: list[Problem]) -> tuple[SettingsPolicy, ...] | None:
    """Return what the definition says of a workflow's own settings."""
    if settings is None:
        return None
    if not isinstance(settings, Settings):
        problems.append(
            Problem("settingsInvalid", "settings", "make them with workflow_settings(...)")
        )
        return None
    made = cast("Settings[BaseModel]", settings)
    problems.extend(made.problems)
    return (made.policy,)


def composed_problems(workflow: Workflow[InputT], *, is_sound: bool = True) -> list[Problem]:
    """Return what is wrong with a definition whose included workflows are all there.

    Args:
        workflow: The definition.
        is_sound: Whether nothing else is wrong with it: then its size is looked at too.
    """
    flat = flattened(workflow)
    problems = [*flat.problems, *snapshot_problems(flat.snapshot)]
    own = (edge for edge in flat.snapshot.edges if edge.scope is None)
    problems.extend(case_problems(workflow.node_by_path, own))
    if flat.problems:
        # A wrong name is one mistake: neither unknown as well, nor is what it would have led to.
        told = {problem.where for problem in flat.problems}
        problems = [each for each in problems if not _follows(each, told)]
    if is_sound and not problems:
        problems.extend(_size_problems(flat.snapshot))
    return problems


def _follows(problem: Problem, told: Container[str]) -> bool:
    """Whether a problem is only what follows from a wrong name at one of these places."""
    if problem.code in _UNKNOWN:
        return problem.where in told
    return problem.code == "nodeUnreachable"


def _caller() -> str:
    """Return the file whose code called the function that calls this one."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    return "" if frame is None else os.path.realpath(frame.f_code.co_filename)


def _model_name(declared: object) -> str | None:
    """Return the name of a model, None for what is no class."""
    return qualified_name(declared) if isinstance(declared, type) else None


def _graph(
    nodes: Mapping[str, AnyNode],
    edges: Iterable[model.Edge],
    name: object,
    start: object,
    max_steps: object,
) -> model.Snapshot:
    """Return the graph; what has the wrong type, which is reported, has something in its place."""
    return model.Snapshot(
        name=_or(name, "unnamed"),
        start_at=_or(start, next(iter(nodes), "")),
        max_steps=max_steps if type(max_steps) is int else STEPS_DEFAULT,
        nodes={path: snapshot_node(node) for path, node in nodes.items()},
        edges=tuple(sorted(edges, key=lambda each: each.source)),
    )


def snapshot_node(node: AnyNode) -> model.Node:
    """Return a node as the snapshot shows it: without its functions."""
    shared = model.Node(
        type="compute",
        timeout_ms=_timeout_ms(node.timeout),
        status_detail=_or(node.status_detail, None),
        output_model=node.output.name if node.output is not None else None,
    )
    match node:
        case ComputeNode():
            return shared.model_copy(
                update={
                    "retry": retry_policy(node.retry),
                    "settings_route": True if node.is_settings_route else None,
                }
            )
        case ActionNode() | ShellNode():
            form = "function" if isinstance(node, ActionNode) else "shell"
            return shared.model_copy(
                update={
                    "type": "action",
                    "action_form": form,
                    "effect": _effect_policy(node.effect),
                    "retry": retry_policy(node.retry),
                    "approved_by": _or(node.approved_by, None),
                }
            )
        case CheckpointNode():
            return shared.model_copy(
                update={"type": "checkpoint", "summary": _or(node.summary, "")}
            )
        case HumanDecisionNode():
            # A response has the engine's own form: its model is no part of the definition.
            return shared.model_copy(
                update={
                    "type": "checkpoint",
                    "output_model": None,
                    "human_decision": node.policy,
                }
            )
        case NotifyNode():
            return shared.model_copy(
                update={
                    "type": "notify",
                    "notify_kind": node.kind,
                    "retry": retry_policy(node.retry),
                }
            )
        case AgentNode():
            return shared.model_copy(
                update={
                    "type": "agent",
                    "expected_output": node.expected,
                    "allowed_tools": node.allowed_tools,
                    "prompt_chars_max": node.prompt_chars_max,
                    "choices": node.choices,
                    "choice_field": node.choice_field,
                    "retry": retry_policy(node.retry),
                }
            )


def _timeout_ms(timeout: TimeLimit) -> int | None:
    faulty = any(True for _ in timeout_problems("", timeout))
    return None if faulty else fixed_timeout_ms(timeout)


def _effect_policy(effect: Effect) -> model.EffectPolicy:
    given = cast("object", effect.type)
    text = given if isinstance(given, str) else "undeclared"
    return model.EffectPolicy(type=text, recovery=effect.recovery)


_T = TypeVar("_T")


def _or(text: object, otherwise: _T) -> str | _T:
    """Return the text, or what stands in for a value whose wrong type is already reported."""
    return text if isinstance(text, str) else otherwise


def _own_problems(
    name: object, input_model: object, max_steps: object, contract_id: object, title: object
) -> Iterator[Problem]:
    yield from _text_needed("nameInvalid", "name", name)
    if not (isinstance(input_model, type) and issubclass(input_model, BaseModel)):
        yield Problem(
            "inputNotModel",
            "input",
            f"{input_model!r:.60}: use a class that extends pydantic.BaseModel",
        )
    if type(max_steps) is not int:
        yield Problem("maxStepsInvalid", "max_steps", f"{max_steps!r:.60}: use a whole number")
    if contract_id is not None:
        yield from _text_needed("contractIdInvalid", "contract_id", contract_id)
    if isinstance(title, str):
        if not title.strip() or len(title) > TITLE_CHARS_MAX:
            yield Problem("titleInvalid", "title", f"use 1 to {TITLE_CHARS_MAX} characters")
    elif title is not None and not callable(title):
        yield Problem(
            "titleInvalid", "title", f"{title!r:.60}: use text, or a function of the input"
        )


def _presentation_problems(presentation: object) -> Iterator[Problem]:
    if presentation is not None:
        for problem in text_problems(
            "presentationInvalid", "presentation", presentation, EXPECTED_OUTPUT_CHARS_MAX
        ):
            yield replace(problem, where="presentation")


def _text_needed(code: str, where: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield Problem(code, where, f"{value!r:.60}: use text")


def _known_nodes(nodes: object, problems: list[Problem]) -> Iterator[tuple[str, AnyNode]]:
    if not isinstance(nodes, Mapping):
        problems.append(Problem("nodesMissing", "nodes", "nodes maps names to nodes"))
        return
    for name, node in cast("Mapping[object, object]", nodes).items():
        if not isinstance(name, str):
            problems.append(
                Problem("nodeNameInvalid", "nodes", f"{name!r:.60} is no node name: use text")
            )
        elif not isinstance(node, NODE_CLASSES):
            problems.append(
                Problem(
                    "nodeInvalid",
                    f"nodes.{name}",
                    f"{node!r:.60} is no node: make one with agent, decision, compute, notify,"
                    " action, shell, checkpoint or human_decision",
                )
            )
        else:
            yield name, cast("AnyNode", node)


def _known_parts(
    parts: object, kind: type[PartT], what: str, problems: list[Problem]
) -> Iterator[tuple[str, PartT]]:
    """Yield the includes or exits that are ones; note the others."""
    if parts is None:
        return
    if not isinstance(parts, Mapping):
        problems.append(Problem(f"{what}Invalid", what, f"{what} maps names to {what[:-1]}(...)"))
        return
    for name, part in cast("Mapping[object, object]", parts).items():
        if isinstance(name, str) and isinstance(part, kind):
            yield name, part
        else:
            problems.append(
                Problem(
                    f"{what}Invalid",
                    f"{what}.{name}",
                    f"{part!r:.60} is none: make one with {what[:-1]}(...)",
                )
            )


def _known_edges(edges: object, problems: list[Problem]) -> Iterator[Way]:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        problems.append(
            Problem("edgeInvalid", "edges", "edges is a list of edge(...) and switch(...)")
        )
        return
    for way in cast("Iterable[object]", edges):
        if isinstance(way, Way):
            problems.extend(way.problems)
            yield way
        else:
            problems.append(
                Problem(
                    "edgeInvalid", "edges", f"{way!r:.60} is no edge: use edge(...) or switch(...)"
                )
            )


def _chosen_edges(
    ways: Iterable[Way], nodes: Mapping[str, AnyNode], problems: list[Problem]
) -> Iterator[model.Edge]:
    """Yield the edges; those of decisions look at the member that their node chooses with."""
    for way in ways:
        if way.edge is None:
            continue
        node = nodes.get(way.edge.source)
        if way.chooser is None or node is None:
            yield way.edge
            continue
        values = snapshot_node(node).case_values
        is_human = isinstance(node, HumanDecisionNode)
        if values is None or is_human != (way.chooser == "human_decision"):
            problems.append(
                Problem(
                    "decisionEdgeMisplaced",
                    f"edges.{way.edge.source}",
                    f"{way.edge.source!r} is no {way.chooser}(...): use switch(...)",
                )
            )
            continue
        yield way.edge.model_copy(update={"on": f"$.{values[0]}"})


def _node_problems(path: str, node: AnyNode, input_model: object) -> Iterator[Problem]:
    where = f"nodes.{path}"
    for problem in node.problems:
        yield replace(problem, where=where)
    expected = _annotated_input(_function_of(node))
    if (
        expected is not None
        and isinstance(input_model, type)
        and not issubclass(input_model, expected)
    ):
        yield Problem(
            "contextInputMismatch",
            where,
            f"its function takes Context[{expected.__name__}], but the workflow's input is"
            f" {input_model.__name__}",
        )


def _function_of(node: AnyNode) -> object:
    """Return what a node calls first with its context, or what stands in its place."""
    match node:
        case ShellNode():
            return node.command
        case AgentNode():
            return node.prompt
        case _:
            return node.function


def _annotated_input(function: object) -> type | None:
    """Return C when the function's first argument is annotated `Context[C]` or its subclass."""
    annotations: dict[str, object] = getattr(function, "__annotations__", {})
    first = next(iter(annotations), "return")
    if first == "return":
        return None
    holder = SimpleNamespace(__annotations__={first: annotations[first]})
    try:
        hints = typing.get_type_hints(holder, globalns=getattr(function, "__globals__", {}))
    except (NameError, TypeError, AttributeError, SyntaxError):
        return None
    origin = typing.get_origin(hints[first])
    arguments: Sequence[object] = typing.get_args(hints[first])
    if isinstance(origin, type) and issubclass(origin, Context) and arguments:
        return arguments[0] if isinstance(arguments[0], type) else None
    return None


def _size_problems(snapshot: model.Snapshot) -> Iterator[Problem]:
    try:
        size = len(canonical.encode(snapshot.document(), field="definition"))
    except PayloadInvalid as error:
        yield Problem("definitionNotJson", error.field or "", error.message)
        return
    if size > DEFINITION_BYTES_MAX:
        yield Problem(
            "definitionTooLarge",
            "",
            f"the definition has {size:,} bytes; at most {DEFINITION_BYTES_MAX:,}: shorten texts"
            " or split the workflow",
        )
