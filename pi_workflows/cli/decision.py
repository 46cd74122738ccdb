"""A decision as the command line shows it, and what a person may answer to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation, WrongUsage
from pi_workflows.definition.decision import DecisionQuestion, Response, response_problem
from pi_workflows.definition.presentation_text import (
    choice_line,
    deadline_line,
    presentation_lines,
)
from pi_workflows.protocol.artifact import plain

_INDENT: Final = "  "


def question_of(contract: Json) -> DecisionQuestion | None:
    """Return the decision that a contract asks for; None when it asks for something else.

    Args:
        contract: A request's contract, fetched.

    Raises:
        ProtocolViolation: The server sent one that cannot be shown.
    """
    found = plain(contract)
    member = found.get("decision") if isinstance(found, dict) else None
    if member is None:
        return None
    try:
        return DecisionQuestion.model_validate_json(canonical.encode(member))
    except ValidationError:
        raise ProtocolViolation("The server sent a decision that cannot be shown.") from None


def decision_lines(question: DecisionQuestion, deadline_at: int | None = None) -> Iterator[str]:
    """Yield a decision for people, a line each: everything there is to know, and the choices.

    Args:
        question: What is asked.
        deadline_at: When it closes by itself, in milliseconds since the epoch.
    """
    yield question.title
    yield ""
    yield from presentation_lines(question.presentation)
    yield ""
    for choice in question.choices:
        yield f"{_INDENT}{choice_line(choice)}"
    if deadline_at is not None:
        yield ""
        yield deadline_line(question, deadline_at)


def decision_example(question: DecisionQuestion) -> str:
    """Return an answer as it is typed in a shell."""
    first = question.choices[0]
    return first.id if first.input is None else f"{first.id} --input TEXT"


def chosen(question: DecisionQuestion, choice: str, text: str | None) -> Response:
    """Return what a person wants to decide.

    Args:
        question: What is asked.
        choice: A choice's ID.
        text: What is typed to it.

    Raises:
        WrongUsage: `answerInvalid`: it is none of the choices.
    """
    by_id = {each.id: each for each in question.choices}
    found = by_id.get(choice)
    named = found.input.name if found is not None and found.input is not None else "input"
    response = Response(choice=choice, input=None if text is None else {named: text})
    problem = response_problem(question.choices, response)
    if problem is not None:
        choices = ", ".join(by_id)
        raise WrongUsage(
            problem, code="answerInvalid", field="CHOICE", hint=f"The choices are {choices}."
        )
    return response
