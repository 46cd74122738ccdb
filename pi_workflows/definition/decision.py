"""What a person decides about, as a definition declares it and as a question shows it.

The engine contract, section 5. Authors, the server and the command line read the same models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    DECISION_AUDIENCE_CHARS_MAX,
    DECISION_CHOICES_MAX,
    DECISION_DEADLINE_MS_MAX,
    DECISION_INPUT_CHARS_DEFAULT,
    DECISION_INPUT_CHARS_MAX,
    DECISION_INPUT_CHARS_MIN,
    PRESENTATION_BLOCKS_MAX,
    PRESENTATION_ITEMS_MAX,
    PRESENTATION_TEXT_UNITS_MAX,
    PRESENTATION_UNITS_MAX,
    SUMMARY_CHARS_MAX,
)
from pi_workflows.definition.document import Document

_CHOICE_ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")


class _Shown(Document):
    """What is stored by itself, or shown."""

    def document(self) -> Json:
        """Return it as JSON: what is absent is left out."""
        document: Json = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return document


class TextInput(Document):
    """What a person types to a choice.

    Attributes:
        name: The member of the response's `input` that holds it.
        prompt: What is asked for.
        chars_min: Characters at least.
        chars_max: Characters at most.
    """

    name: str
    prompt: str
    chars_min: int = DECISION_INPUT_CHARS_MIN
    chars_max: int = DECISION_INPUT_CHARS_DEFAULT


class Choice(_Shown):
    """One way to decide.

    Attributes:
        id: What the response names.
        label: What a person reads.
        input: What a person types to it; None when there is nothing to say.
    """

    id: str
    label: str
    input: TextInput | None = None


class Response(_Shown):
    """A decision as it is given: the choice, and the text typed to it by its name."""

    choice: str
    input: dict[str, str] | None = None


class DecisionPolicy(Document):
    """What a definition says of a decision: the same for each time that it is asked.

    Attributes:
        audience: Who is asked, such as `operator`.
        choices: The ways to decide.
        timeout_ms: Wall time after which the default is the decision.
        default_response: That default; there exactly when `timeout_ms` is.
        expires_ms: Wall time after which nobody decides any more; excludes the two others.
    """

    audience: str
    choices: tuple[Choice, ...]
    timeout_ms: int | None = None
    default_response: Response | None = None
    expires_ms: int | None = None

    @property
    def deadline_ms(self) -> int | None:
        """Wall time from the question until it closes by itself; None when it never does."""
        return self.expires_ms if self.timeout_ms is None else self.timeout_ms


class Paragraph(Document):
    """Running text."""

    type: Literal["paragraph"] = "paragraph"
    text: str


class Section(Document):
    """A heading of what follows."""

    type: Literal["section"] = "section"
    title: str


class Bullets(Document):
    """A list."""

    type: Literal["bullets"] = "bullets"
    items: tuple[str, ...]


class LabelledValue(Document):
    """A value and what it is called."""

    label: str
    value: str


class Fields(Document):
    """Values with their names."""

    type: Literal["fields"] = "fields"
    items: tuple[LabelledValue, ...]


class Preformatted(Document):
    """Text whose line breaks and spaces count, such as a command or a difference."""

    type: Literal["preformatted"] = "preformatted"
    text: str


Block: TypeAlias = Annotated[
    Paragraph | Section | Bullets | Fields | Preformatted, Field(discriminator="type")
]
"""One part of a presentation; parts are not nested."""


class Presentation(_Shown):
    """`pi-workflows.decision-presentation.v1`: everything that a person is shown.

    Attributes:
        schema_id: The fixed schema name; `schema` on the wire.
        summary: The decision in a sentence or two.
        blocks: What there is to know, in order.
    """

    schema_id: Literal["pi-workflows.decision-presentation.v1"] = Field(
        default="pi-workflows.decision-presentation.v1",
        validation_alias="schema",
        serialization_alias="schema",
    )
    summary: str
    blocks: tuple[Block, ...] = ()


class DecisionQuestion(DecisionPolicy):
    """The member `decision` of a question's contract: one asking of a decision.

    Attributes:
        title: What is decided, in one line.
        subject: What it is decided about, exactly; an approval holds for this value alone.
        presentation: What the person is shown of it.
    """

    title: str
    subject: object
    presentation: Presentation

    @property
    def policy(self) -> DecisionPolicy:
        """What the definition says of it."""
        return DecisionPolicy(
            audience=self.audience,
            choices=self.choices,
            timeout_ms=self.timeout_ms,
            default_response=self.default_response,
            expires_ms=self.expires_ms,
        )


def policy_problems(policy: DecisionPolicy) -> Iterator[str]:
    """Yield what is wrong with a declared decision, a sentence each."""
    if not 1 <= len(policy.audience) <= DECISION_AUDIENCE_CHARS_MAX:
        yield f"audience: use 1 to {DECISION_AUDIENCE_CHARS_MAX} characters"
    yield from _choice_problems(policy.choices)
    if (policy.timeout_ms is None) != (policy.default_response is None):
        yield "a timeout has a default response, and a default response has a timeout"
    if policy.timeout_ms is not None and policy.expires_ms is not None:
        yield "a timeout with a default and an expiry exclude one another"
    for name, value in (("timeout", policy.timeout_ms), ("expiry", policy.expires_ms)):
        if value is not None and not 1 <= value <= DECISION_DEADLINE_MS_MAX:
            yield f"{name}: {value} ms; use 1 to {DECISION_DEADLINE_MS_MAX} ms"
    if policy.default_response is not None:
        problem = response_problem(policy.choices, policy.default_response)
        if problem is not None:
            yield f"default response: {problem}"


def _choice_problems(choices: tuple[Choice, ...]) -> Iterator[str]:
    """Yield what is wrong with the ways to decide."""
    if not 1 <= len(choices) <= DECISION_CHOICES_MAX:
        yield f"{len(choices)} choices; use 1 to {DECISION_CHOICES_MAX}"
    for name, values in (
        ("ID", [choice.id for choice in choices]),
        ("label", [choice.label for choice in choices]),
    ):
        if len(set(values)) < len(values):
            yield f"two choices have the same {name}"
    for choice in choices:
        if not _CHOICE_ID.fullmatch(choice.id):
            yield f"choice {choice.id!r}: use letters, digits, '_' and '-', a letter or '_' first"
        if not 1 <= len(choice.label) <= SUMMARY_CHARS_MAX:
            yield f"choice {choice.id!r}: its label has 1 to {SUMMARY_CHARS_MAX} characters"
        if choice.input is not None:
            yield from _input_problems(choice.id, choice.input)
    if sum(choice.input is not None for choice in choices) > 1:
        yield "at most one choice takes a text"


def _input_problems(choice_id: str, asked: TextInput) -> Iterator[str]:
    """Yield what is wrong with the text of a choice."""
    if not _CHOICE_ID.fullmatch(asked.name):
        yield f"choice {choice_id!r}: input {asked.name!r} is no name"
    if not 1 <= len(asked.prompt) <= SUMMARY_CHARS_MAX:
        yield f"choice {choice_id!r}: its prompt has 1 to {SUMMARY_CHARS_MAX} characters"
    if not 0 <= asked.chars_min <= asked.chars_max <= DECISION_INPUT_CHARS_MAX:
        yield f"choice {choice_id!r}: its text has 0 to {DECISION_INPUT_CHARS_MAX:,} characters"


def presentation_problems(presentation: Presentation) -> Iterator[str]:
    """Yield what is over a limit of what a person is shown; nothing is ever shortened."""
    texts = list(_texts(presentation))
    total = sum(map(utf16_units, texts))
    if not presentation.summary.strip():
        yield "the presentation needs a summary"
    if total > PRESENTATION_UNITS_MAX:
        yield f"the presentation has {total:,} UTF-16 units; at most {PRESENTATION_UNITS_MAX:,}"
    if len(presentation.blocks) > PRESENTATION_BLOCKS_MAX:
        yield f"{len(presentation.blocks):,} blocks; at most {PRESENTATION_BLOCKS_MAX}"
    items = sum(
        len(block.items) for block in presentation.blocks if isinstance(block, Bullets | Fields)
    )
    if items > PRESENTATION_ITEMS_MAX:
        yield f"{items:,} items; at most {PRESENTATION_ITEMS_MAX}"
    if any(utf16_units(text) > PRESENTATION_TEXT_UNITS_MAX for text in texts):
        yield f"a text has more than {PRESENTATION_TEXT_UNITS_MAX:,} UTF-16 units"


def _texts(presentation: Presentation) -> Iterator[str]:
    """Yield every text of a presentation."""
    yield presentation.summary
    for block in presentation.blocks:
        match block:
            case Paragraph(text=text) | Preformatted(text=text) | Section(title=text):
                yield text
            case Bullets():
                yield from block.items
            case Fields():
                for item in block.items:
                    yield from (item.label, item.value)


def utf16_units(text: str) -> int:
    """Return how many UTF-16 code units a text has, by which channels count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def response_problem(choices: Iterable[Choice], response: Response) -> str | None:
    """Return why a response does not fit the choices, in one line; None when it does."""
    by_id = {choice.id: choice for choice in choices}
    choice = by_id.get(response.choice)
    if choice is None:
        known = ", ".join(by_id)
        return f"choice: {response.choice!r} is none of {known}"
    return _input_problem(choice, response.input or {})


def _input_problem(choice: Choice, given: Mapping[str, str]) -> str | None:
    """Return why the text does not fit its choice."""
    asked = choice.input
    if asked is None:
        return f"input: {choice.id} takes no text" if given else None
    if set(given) != {asked.name}:
        return f"input: {choice.id} needs {asked.name} and nothing else"
    count = len(given[asked.name])
    if not asked.chars_min <= count <= asked.chars_max:
        return (
            f"input.{asked.name}: {count:,} characters; use {asked.chars_min:,} to"
            f" {asked.chars_max:,}"
        )
    return None
