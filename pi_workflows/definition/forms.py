"""What each form of node may declare, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pi_workflows.base.errors import Problem
from pi_workflows.base.limits import (
    ALLOWED_TOOLS_MAX,
    CHOICE_CHARS_MAX,
    CHOICES_MAX,
    EXPECTED_OUTPUT_CHARS_MAX,
    PROMPT_CHARS_MAX,
)
from pi_workflows.definition.selector import parse_selector
from pi_workflows.definition.snapshot import AssistantOutput, Edge, Node

_TOOL: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")
_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")

# Which form of node each member belongs to.
_OWNERS: Final[Mapping[str, str]] = {
    "expected_output": "agent",
    "allowed_tools": "agent",
    "prompt_chars_max": "agent",
    "choices": "agent",
    "choice_field": "agent",
    "notify_kind": "notify",
}


def form_problems(where: str, node: Node) -> Iterator[Problem]:
    """Yield what is wrong with the members that only agents and notifications have."""
    for member, owner in _OWNERS.items():
        if getattr(node, member) is not None and node.type != owner:
            yield Problem("memberMisplaced", where, f"{member} belongs to a node of type {owner}")
    if node.type == "agent":
        yield from _agent_problems(where, node)
    if node.type == "notify" and node.notify_kind is None:
        yield Problem("notifyKindMissing", where, "kind is 'progress' or 'final'")


def case_problems(where: str, edge: Edge, node: Node) -> Iterator[Problem]:
    """Yield where a switch on a choice has not exactly the choices as its cases."""
    selector = parse_selector(edge.on) if edge.on is not None else None
    values = node.case_values
    if selector is None or selector.source != "output" or values is None or edge.cases is None:
        return
    field, choices = values
    if selector.path != (field,):
        return
    missing = [choice for choice in choices if choice not in edge.cases]
    if missing:
        yield Problem("switchCaseMissing", where, f"add a case for {', '.join(missing)}")
    for case in edge.cases:
        if case not in choices:
            yield Problem(
                "switchCaseImpossible",
                where,
                f"case {case!r}: the choices are {', '.join(choices)}",
            )


def _agent_problems(where: str, node: Node) -> Iterator[Problem]:
    if isinstance(node.expected_output, AssistantOutput):
        yield from _assistant_problems(where, node, node.expected_output)
    elif node.expected_output is None and node.output_model is None:
        yield Problem(
            "outputMissing",
            where,
            "output is missing: a pydantic model, a description in words, or assistant_message()",
        )
    elif node.expected_output is not None and not (
        node.expected_output.strip() and len(node.expected_output) <= EXPECTED_OUTPUT_CHARS_MAX
    ):
        yield Problem(
            "outputInvalid",
            where,
            f"output: use a description of 1 to {EXPECTED_OUTPUT_CHARS_MAX:,} characters",
        )
    if node.prompt_chars_max is not None and not 1 <= node.prompt_chars_max <= PROMPT_CHARS_MAX:
        yield Problem(
            "promptLimitInvalid",
            where,
            f"prompt_chars_max={node.prompt_chars_max}; use 1 to {PROMPT_CHARS_MAX:,}",
        )
    yield from _tool_problems(where, node.allowed_tools)
    yield from _choice_problems(where, node)


def _assistant_problems(where: str, node: Node, output: AssistantOutput) -> Iterator[Problem]:
    if output.max_chars is not None and output.max_chars < 1:
        yield Problem(
            "outputInvalid", where, f"max_chars={output.max_chars}: use a positive number or None"
        )
    if node.output_model is not None or node.choices is not None:
        yield Problem("outputInvalid", where, "the visible text of a turn has no model or choices")
    if node.retry is not None:
        yield Problem(
            "retryMisplaced",
            where,
            "retry: the visible text of a turn is taken as it is and not asked for again",
        )


def _tool_problems(where: str, tools: tuple[str, ...] | None) -> Iterator[Problem]:
    if tools is None:
        return
    if len(tools) > ALLOWED_TOOLS_MAX or len(set(tools)) != len(tools):
        yield Problem(
            "allowedToolsInvalid",
            where,
            f"allowed_tools: name at most {ALLOWED_TOOLS_MAX} tools, each once",
        )
    for tool in tools:
        if _TOOL.fullmatch(tool) is None:
            yield Problem(
                "allowedToolsInvalid",
                where,
                f"allowed_tools: {tool!r:.80} is no tool's name, such as 'read'",
            )


def _choice_problems(where: str, node: Node) -> Iterator[Problem]:
    if (node.choices is None) != (node.choice_field is None):
        yield Problem("choicesInvalid", where, "choices and their field stand together")
    if node.choices is None or node.choice_field is None:
        return
    if _FIELD.fullmatch(node.choice_field) is None:
        yield Problem(
            "choicesInvalid",
            where,
            f"field {node.choice_field!r:.80}: use letters, digits, '_' and '-', a letter or '_'"
            " first",
        )
    if not 1 <= len(node.choices) <= CHOICES_MAX or len(set(node.choices)) != len(node.choices):
        yield Problem("choicesInvalid", where, f"choices: use 1 to {CHOICES_MAX} texts, each once")
    for choice in node.choices:
        if not choice.strip() or len(choice) > CHOICE_CHARS_MAX:
            yield Problem(
                "choicesInvalid",
                where,
                f"choice {choice!r:.80}: use 1 to {CHOICE_CHARS_MAX} characters",
            )
