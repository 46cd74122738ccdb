"""Building what a person is shown of a decision, and refusing what no channel could show whole.

The engine contract, section 5. A document over a limit fails; nothing is ever shortened, as what
somebody approves is what they were shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from pydantic import ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, Problem, ProblemsFound
from pi_workflows.definition.decision import (
    Block,
    Bullets,
    Fields,
    LabelledValue,
    Paragraph,
    Preformatted,
    Presentation,
    Section,
    presentation_problems,
)

_CODE: Final = "presentationInvalid"
# C0 and C1 controls and DEL, which a terminal would obey; running text may have lines and columns.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_OF_TEXT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE_END: Final = re.compile(r"\r\n?")


class PresentationBuilder:
    """Collects what a person is shown, block by block; made by `present`."""

    def __init__(self, summary: str) -> None:
        """Begin with what is decided.

        Args:
            summary: The decision in a sentence or two.
        """
        self._summary = summary
        self._blocks: list[Block] = []

    def paragraph(self, text: str) -> PresentationBuilder:
        """Add running text."""
        return self._add(Paragraph(text=_text(text)))

    def section(self, title: str) -> PresentationBuilder:
        """Add a heading of the blocks that follow."""
        return self._add(Section(title=_text(title)))

    def bullets(self, *items: str) -> PresentationBuilder:
        """Add a list of one-line texts."""
        return self._add(Bullets(items=tuple(map(_text, items))))

    def fields(self, **values: object) -> PresentationBuilder:
        """Add values with their labels: the names, with spaces for underscores."""
        items = tuple(
            LabelledValue(label=_text(name.replace("_", " ")), value=_text(str(value)))
            for name, value in values.items()
        )
        return self._add(Fields(items=items))

    def preformatted(self, text: str) -> PresentationBuilder:
        """Add text whose line breaks and spaces count, such as a command or a difference."""
        return self._add(Preformatted(text=_text(text)))

    def build(self) -> Presentation:
        """Return the presentation.

        Raises:
            ProblemsFound: `presentationInvalid`, everything in it that is empty, over its limit or
                not showable.
        """
        presentation = Presentation(summary=_text(self._summary), blocks=tuple(self._blocks))
        return require_showable(presentation)

    def _add(self, block: Block) -> PresentationBuilder:
        self._blocks.append(block)
        return self


def present(summary: str) -> PresentationBuilder:
    """Begin what a person is shown of a decision.

    Args:
        summary: The decision in a sentence or two; shown first.

    Returns:
        A builder; each of its methods adds one block and returns it: `paragraph(text)`,
        `section(title)`, `bullets(*items)`, `fields(name=value)`, `preformatted(text)`.
    """
    return PresentationBuilder(summary)


def presentation_of(value: object) -> Presentation:
    """Return the presentation that an author's function gave, checked.

    Args:
        value: A builder, a presentation, or the JSON of one.

    Raises:
        PayloadInvalid: `presentationInvalid`, it is none, or cannot be shown as a whole.
    """
    match value:
        case PresentationBuilder():
            return value.build()
        case Presentation():
            return require_showable(value)
        case dict():
            return parse_presentation(cast("Json", value))
        case _:
            message = f"presentation is {value!r:.60}: use present(...)"
            raise PayloadInvalid(message, code=_CODE, field="presentation")


def parse_presentation(value: Json) -> Presentation:
    """Read a presentation's JSON.

    Raises:
        ProblemsFound: `presentationInvalid`, everything that is wrong with it, each with its path.
    """
    try:
        presentation = Presentation.model_validate_json(
            canonical.encode(value, field="presentation")
        )
    except ValidationError as error:
        raise ProblemsFound(
            (
                Problem(_CODE, ".".join(("presentation", *map(str, detail["loc"]))), detail["msg"])
                for detail in error.errors(include_url=False, include_input=False)
            ),
            code=_CODE,
        ) from None
    return require_showable(presentation)


def require_showable(presentation: Presentation) -> Presentation:
    """Return a presentation that every channel can show. Raises as `PresentationBuilder.build`."""
    problems = [
        *(Problem(_CODE, "presentation", text) for text in presentation_problems(presentation)),
        *_text_problems(presentation),
    ]
    if problems:
        raise ProblemsFound(problems, code=_CODE)
    return presentation


def _text(text: str) -> str:
    """Return a text with one kind of line ends."""
    return _LINE_END.sub("\n", text)


def _text_problems(presentation: Presentation) -> Iterator[Problem]:
    """Yield what is empty, and what a terminal would obey instead of show."""
    yield from _line_problems("presentation.summary", presentation.summary, _CONTROL_OF_TEXT)
    for index, block in enumerate(presentation.blocks):
        where = f"presentation.blocks.{index}"
        match block:
            case Paragraph(text=text) | Preformatted(text=text):
                yield from _line_problems(f"{where}.text", text, _CONTROL_OF_TEXT)
            case Section(title=title):
                yield from _line_problems(f"{where}.title", title, _CONTROL)
            case Bullets():
                for number, item in enumerate(block.items):
                    yield from _line_problems(f"{where}.items.{number}", item, _CONTROL)
            case Fields():
                for number, field in enumerate(block.items):
                    place = f"{where}.items.{number}"
                    yield from _line_problems(f"{place}.label", field.label, _CONTROL)
                    yield from _line_problems(f"{place}.value", field.value, _CONTROL_OF_TEXT)


def _line_problems(where: str, text: str, control: re.Pattern[str]) -> Iterator[Problem]:
    if not text.strip():
        yield Problem(_CODE, where, "is empty: leave it out")
    elif control.search(text) is not None:
        yield Problem(_CODE, where, "holds control characters, which no channel shows")
