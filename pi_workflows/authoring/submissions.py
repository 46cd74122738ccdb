"""Judging what a model submitted, or said, by the node that asked for it."""

from __future__ import annotations

import inspect
from typing import Final

from pi_workflows.authoring.nodes import AgentNode, plain_json
from pi_workflows.authoring.reading import found_json, whole_json
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem, ProblemsFound
from pi_workflows.definition.snapshot import AssistantOutput

_CODE: Final = "answerInvalid"
_FIELD: Final = "output"


def accepted_output(node: AgentNode[object], candidate: Json) -> Json:
    """Return what a model submitted as the node's output.

    Args:
        node: A node whose output is submitted.
        candidate: The submission. A text is read leniently as JSON where something judges the
            value: a model, `validate` or choices. Where nothing does it is taken as it is, unless
            the whole of it is JSON.

    Returns:
        The output as JSON.

    Raises:
        ProblemsFound: `answerInvalid`: it does not fit; the model may submit again.
        Exception: Whatever `validate` raises.
    """
    is_judged = node.output is not None or node.validate is not None or node.choices is not None
    reading = None
    if isinstance(candidate, str):
        reading = found_json(candidate) if is_judged else whole_json(candidate)
    if node.validate is not None:
        return _validated(node, candidate if reading is None else reading.value)
    if reading is None:
        return _fitting(node, candidate)
    try:
        return _fitting(node, reading.value)
    except ProblemsFound as error:
        # A model may want the text itself, such as a number that is an identifier.
        try:
            return _fitting(node, candidate)
        except ProblemsFound:
            raise error from None


def accepted_text(expected: AssistantOutput, candidate: Json) -> str:
    """Return the visible text of a turn as a node's output.

    Args:
        expected: What the node asks for.
        candidate: The text.

    Raises:
        ProblemsFound: `answerInvalid`: it is no text, an empty one, or longer than allowed.
    """
    if not isinstance(candidate, str) or not candidate.strip():
        raise _refused("is empty: the text of the turn is the answer")
    if expected.max_chars is not None and len(candidate) > expected.max_chars:
        raise _refused(f"has {len(candidate):,} characters; at most {expected.max_chars:,}")
    return candidate


def _validated(node: AgentNode[object], value: Json) -> Json:
    """Return what the author's `validate` makes of a value."""
    assert node.validate is not None
    result = node.validate(value)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise _refused("validate is async: write it as a plain function")
    if node.output is None:
        return plain_json(result)
    return node.output.json(result, field=_FIELD)


def _fitting(node: AgentNode[object], value: Json) -> Json:
    """Return a value that fits the node's model or choices. Raises ProblemsFound."""
    if node.choices is not None and node.choice_field is not None:
        members = value if isinstance(value, dict) else {}
        if members.get(node.choice_field) not in node.choices:
            listed = ", ".join(f'"{choice}"' for choice in node.choices)
            raise _refused(
                f'use a JSON object whose "{node.choice_field}" is one of: {listed}',
            )
    return node.accept_answer(value, field=_FIELD)


def _refused(message: str) -> ProblemsFound:
    return ProblemsFound([Problem(_CODE, _FIELD, message)], code=_CODE)
