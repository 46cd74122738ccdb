"""The constructors of nodes that a model takes: agents and decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from pydantic import BaseModel

from pi_workflows.authoring.context import Context
from pi_workflows.authoring.declared import (
    common_problems,
    declared_model,
    function_problems,
    output_model,
    retry_problems,
    text_problems,
)
from pi_workflows.authoring.nodes import AgentNode
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.authoring.policies import TIMEOUT_DEFAULT, Retry, TimeLimit
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem
from pi_workflows.base.limits import PROMPT_CHARS_DEFAULT, PROMPT_CHARS_MAX
from pi_workflows.definition.snapshot import AssistantOutput

OutputT = TypeVar("OutputT")
ModelT = TypeVar("ModelT", bound=BaseModel)

# Plain (run in a thread) or async.
TextFunction: TypeAlias = Callable[[Context[Any]], str | Awaitable[str]]
Prompt: TypeAlias = str | TextFunction

# Stands in a node whose prompt is missing until its problem is reported; such a node never runs.
_PROMPT_MISSING = ""
_OUTPUT_HINT = "a pydantic model, a description in words, or assistant_message()"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What `assistant_message` returns: the visible text of the turn is the output."""

    max_chars: int | None


def assistant_message(*, max_chars: int | None = None) -> AssistantMessage:
    """Make the visible text of an agent's turn its output, exactly as it stands there.

    Args:
        max_chars: The greatest number of characters; a longer text is refused. None = no limit.

    Returns:
        The declaration, for `agent(output=...)`. Such a node has no retry.
    """
    return AssistantMessage(max_chars)


class TurnOptions(TypedDict, total=False):
    """What every agent may declare; see `agent`."""

    timeout: TimeLimit
    allowed_tools: Sequence[str] | None
    prompt_chars_max: int | None
    status_detail: str | None


class AgentOptions(TurnOptions, total=False):
    """What an agent may declare that submits its output; see `agent`."""

    retry: Retry | None


@overload
def agent(
    *, prompt: Prompt, output: type[ModelT], **options: Unpack[AgentOptions]
) -> AgentNode[ModelT]: ...
@overload
def agent(
    *, prompt: Prompt, output: AssistantMessage, **options: Unpack[TurnOptions]
) -> AgentNode[str]: ...
@overload
def agent(
    *,
    prompt: Prompt,
    output: str,
    validate: Callable[[Any], OutputT],
    **options: Unpack[AgentOptions],
) -> AgentNode[OutputT]: ...
@overload
def agent(*, prompt: Prompt, output: str, **options: Unpack[AgentOptions]) -> AgentNode[Json]: ...
@overload
def agent(
    *, output: type[ModelT], **options: Unpack[AgentOptions]
) -> Callable[[TextFunction], AgentNode[ModelT]]: ...
@overload
def agent(
    *, output: AssistantMessage, **options: Unpack[TurnOptions]
) -> Callable[[TextFunction], AgentNode[str]]: ...
@overload
def agent(
    *, output: str, validate: Callable[[Any], OutputT], **options: Unpack[AgentOptions]
) -> Callable[[TextFunction], AgentNode[OutputT]]: ...
@overload
def agent(
    *, output: str, **options: Unpack[AgentOptions]
) -> Callable[[TextFunction], AgentNode[Json]]: ...
def agent(
    *,
    prompt: Prompt | None = None,
    output: type[BaseModel] | AssistantMessage | str | None = None,
    validate: Callable[[Any], object] | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    allowed_tools: Sequence[str] | None = None,
    prompt_chars_max: int | None = None,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> object:
    """Make a step that a model takes in the run's Pi session; without a prompt, a decorator.

    Args:
        prompt: What the model is told: text, or a function of the context that returns it. It may
            be called again after a crash, so it changes nothing outside.
        output: What the model gives: a pydantic model that its submission must fit, a description
            in words, or `assistant_message()` for the visible text of its turn.
        validate: With a description: makes the output of what was submitted. What it raises goes
            back to the model, which may submit again.
        timeout: Active time of the model's turns; None = no limit.
        allowed_tools: The tools that the model may use beside the workflow's own; `[]` for none,
            None for all.
        prompt_chars_max: The greatest length of the prompt, 96,000 characters by default and at
            most 1,000,000. A longer one fails the node.
        retry: When a visit is tried again; never with `assistant_message()`.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`.
    """

    def build(told: Prompt) -> AgentNode[object]:
        return AgentNode(
            prompt=_known_prompt(told),
            expected=_expected(output),
            output=_submitted_model(output, validate),
            validate=validate if callable(validate) else None,
            allowed_tools=_tools(allowed_tools),
            prompt_chars_max=prompt_chars_max if type(prompt_chars_max) is int else None,
            timeout=timeout,
            retry=retry,
            status_detail=status_detail,
            problems=(
                *_prompt_problems("prompt", told, prompt_chars_max),
                *_output_problems(output, validate),
                *_tools_problems(allowed_tools),
                *common_problems(timeout, None, status_detail),
                *retry_problems(retry),
            ),
        )

    return build if prompt is None else build(prompt)


@overload
def decision(
    *,
    choices: Sequence[str],
    question: Prompt,
    field: str = "route",
    **options: Unpack[AgentOptions],
) -> AgentNode[dict[str, Any]]: ...
@overload
def decision(
    *, choices: Sequence[str], field: str = "route", **options: Unpack[AgentOptions]
) -> Callable[[TextFunction], AgentNode[dict[str, Any]]]: ...
def decision(
    *,
    choices: Sequence[str],
    question: Prompt | None = None,
    field: str = "route",
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    allowed_tools: Sequence[str] | None = None,
    prompt_chars_max: int | None = None,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> object:
    """Make an agent that chooses one of several ways; without a question, a decorator.

    Args:
        choices: The ways, 1 to 64 different texts.
        question: What the model is asked: text, or a function of the context that returns it.
        field: The member of the output that holds the choice; the model may add others.
        timeout: As for `agent`, like the options that follow.
        allowed_tools: As for `agent`.
        prompt_chars_max: As for `agent`.
        retry: As for `agent`.
        status_detail: As for `agent`.

    Returns:
        The node, for `define_workflow(nodes=...)`; `decision_edge` leads on from it.
    """
    texts = tuple(choice for choice in _listed(choices) if isinstance(choice, str))
    member = field if isinstance(cast("object", field), str) else ""
    listed = ", ".join(f'"{choice}"' for choice in texts)

    def build(asked: Prompt) -> AgentNode[object]:
        return AgentNode(
            prompt=_known_prompt(asked),
            expected=f'A JSON object whose "{member}" is one of: {listed}',
            choices=texts,
            choice_field=member,
            allowed_tools=_tools(allowed_tools),
            prompt_chars_max=prompt_chars_max if type(prompt_chars_max) is int else None,
            timeout=timeout,
            retry=retry,
            status_detail=status_detail,
            problems=(
                *_choices_problems(choices, texts),
                *_prompt_problems("question", asked, prompt_chars_max),
                *_tools_problems(allowed_tools),
                *common_problems(timeout, None, status_detail),
                *retry_problems(retry),
            ),
        )

    return build if question is None else build(question)


def _known_prompt(prompt: object) -> Prompt:
    """Return a prompt; in the place of what is none, one that is never given."""
    if callable(prompt) or isinstance(prompt, str):
        return cast("Prompt", prompt)
    return _PROMPT_MISSING


def _expected(output: object) -> str | AssistantOutput | None:
    """Return the snapshot's form of an expected output; None for a model."""
    if isinstance(output, AssistantMessage):
        limit = cast("object", output.max_chars)
        return AssistantOutput(max_chars=limit if type(limit) is int else None)
    return output if isinstance(output, str) else None


def _submitted_model(output: object, validate: object) -> OutputModel | None:
    """Return the model of the output: the declared one, or the one that `validate` gives."""
    if isinstance(output, str):
        return output_model(None, validate)
    return declared_model(output)


def _output_problems(output: object, validate: object) -> Iterator[Problem]:
    if isinstance(output, AssistantMessage):
        limit = cast("object", output.max_chars)
        if limit is not None and type(limit) is not int:
            yield Problem(
                "outputInvalid", "", f"max_chars={limit!r:.60}: use a positive number or None"
            )
    elif output is not None and not isinstance(output, str) and declared_model(output) is None:
        yield Problem("outputInvalid", "", f"output is {output!r:.60}: use {_OUTPUT_HINT}")
    if validate is None:
        return
    if not isinstance(output, str):
        yield Problem(
            "validateMisplaced",
            "",
            "validate stands with a description: a model checks by itself, and a text is taken as"
            " it is",
        )
    yield from function_problems(validate, "validate")


def _prompt_problems(what: str, prompt: object, chars_max: object) -> Iterator[Problem]:
    if chars_max is not None and type(chars_max) is not int:
        yield Problem(
            "promptLimitInvalid",
            "",
            f"prompt_chars_max={chars_max!r:.60}: use 1 to {PROMPT_CHARS_MAX:,}",
        )
    if callable(prompt):
        yield from function_problems(prompt, what)
    else:
        most = chars_max if type(chars_max) is int else PROMPT_CHARS_DEFAULT
        yield from text_problems("promptInvalid", what, prompt, most)


def _tools(tools: object) -> tuple[str, ...] | None:
    """Return the names of tools, as far as they are texts."""
    if tools is None:
        return None
    return tuple(tool for tool in _listed(tools) if isinstance(tool, str))


def _tools_problems(tools: object) -> Iterator[Problem]:
    if tools is None:
        return
    listed = _listed(tools)
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        yield Problem("allowedToolsInvalid", "", "allowed_tools is a list of tools' names")
    elif not all(isinstance(tool, str) for tool in listed):
        yield Problem("allowedToolsInvalid", "", "allowed_tools: each is a tool's name")


def _choices_problems(choices: object, texts: tuple[str, ...]) -> Iterator[Problem]:
    if len(texts) != len(_listed(choices)) or isinstance(choices, str):
        yield Problem("choicesInvalid", "", f"choices is {choices!r:.60}: use a list of texts")


def _listed(values: object) -> tuple[object, ...]:
    """Return the parts of a list; of anything else, nothing."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return ()
    return tuple(cast("Iterable[object]", values))
