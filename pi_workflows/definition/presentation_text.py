"""A decision as plain lines, for whoever has no richer way to show it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.definition.decision import (
    Bullets,
    Choice,
    DecisionQuestion,
    Fields,
    Paragraph,
    Preformatted,
    Presentation,
    Section,
)

_INDENT: Final = "  "


def presentation_lines(presentation: Presentation) -> Iterator[str]:
    """Yield everything that a presentation says, a line each; blocks are apart by an empty line.

    Args:
        presentation: What is shown. Its texts are yielded as they are: whoever writes them to a
            terminal escapes them.
    """
    yield from presentation.summary.split("\n")
    for block in presentation.blocks:
        yield ""
        match block:
            case Paragraph():
                yield from block.text.split("\n")
            case Section():
                yield f"## {block.title}"
            case Bullets():
                for item in block.items:
                    yield f"- {item}"
            case Fields():
                for field in block.items:
                    first, *others = field.value.split("\n")
                    yield f"{field.label}: {first}"
                    yield from (f"{_INDENT}{line}" for line in others)
            case Preformatted():
                yield from (f"{_INDENT}{line}" for line in block.text.split("\n"))


def choice_line(choice: Choice) -> str:
    """Return a choice in a line: its ID, its label, and what is typed to it."""
    asked = f" ({choice.input.prompt})" if choice.input is not None else ""
    return f"{choice.id}: {choice.label}{asked}"


def deadline_line(question: DecisionQuestion, deadline_at: int) -> str:
    """Return what happens when nobody decides in time.

    Args:
        question: What is asked.
        deadline_at: Milliseconds since the epoch.
    """
    at = datetime.fromtimestamp(deadline_at // MS_PER_SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    default = question.default_response
    if default is None:
        return f"After {at} nobody can decide any more."
    return f"Without a decision by {at} it is: {default.choice}."


def question_text(question: DecisionQuestion, deadline_at: int | None) -> str:
    """Return a decision as a text: what is decided, what there is to know, and the choices.

    Args:
        question: What is asked; its subject is no part of the text.
        deadline_at: When it closes by itself, in milliseconds since the epoch.
    """
    lines = [question.title, "", *presentation_lines(question.presentation), ""]
    lines += [f"- {choice_line(choice)}" for choice in question.choices]
    if deadline_at is not None:
        lines += ["", deadline_line(question, deadline_at)]
    return "\n".join(lines)
