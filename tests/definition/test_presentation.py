"""What a person is shown of a decision: built in blocks, and refused whole beyond a limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, ProblemsFound
from pi_workflows.base.limits import (
    PRESENTATION_BLOCKS_MAX,
    PRESENTATION_ITEMS_MAX,
    PRESENTATION_TEXT_UNITS_MAX,
)
from pi_workflows.definition.presentation import (
    PresentationBuilder,
    present,
    presentation_of,
)


def test_blocks_stand_in_their_order() -> None:
    """Each method adds one block; line ends are one kind, everything else stays as it is."""
    shown = (
        present("Deploy?\r\nNow.")
        .section("Changes")
        .bullets("one", "two")
        .fields(Risk="low", Plan_revision=3)
        .paragraph("Text\twith columns\rand lines.")
        .preformatted("  $ make\n")
    )
    document: Json = {
        "schema": "pi-workflows.decision-presentation.v1",
        "summary": "Deploy?\nNow.",
        "blocks": [
            {"type": "section", "title": "Changes"},
            {"type": "bullets", "items": ["one", "two"]},
            {
                "type": "fields",
                "items": [
                    {"label": "Risk", "value": "low"},
                    {"label": "Plan revision", "value": "3"},
                ],
            },
            {"type": "paragraph", "text": "Text\twith columns\nand lines."},
            {"type": "preformatted", "text": "  $ make\n"},
        ],
    }
    assert shown.build().document() == document
    assert presentation_of(shown) == presentation_of(document) == presentation_of(shown.build())


def full(count: int, text: str) -> PresentationBuilder:
    """Build a presentation of so many paragraphs."""
    shown = present("x")
    for _ in range(count):
        shown.paragraph(text)
    return shown


def short(count: int) -> PresentationBuilder:
    """Build a presentation of so many short paragraphs."""
    return full(count, "x")


def items(count: int) -> PresentationBuilder:
    """Build a presentation of so many bullets."""
    return present("x").bullets(*["x"] * count)


def long(units: int) -> PresentationBuilder:
    """Build a presentation with one long text."""
    return present("x").paragraph("x" * units)


def astral(units: int) -> PresentationBuilder:
    """Build a presentation of characters that count twice."""
    return present("x").paragraph("𝄞" * (units // 2) + "x" * (units % 2))


def total(units: int) -> PresentationBuilder:
    """Build a presentation with so many units in all."""
    shown = full(units // 10_000, "x" * 10_000)
    return shown.paragraph("x" * (units % 10_000 - 1))


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (short, PRESENTATION_BLOCKS_MAX),
        (items, PRESENTATION_ITEMS_MAX),
        (long, PRESENTATION_TEXT_UNITS_MAX),
        (astral, PRESENTATION_TEXT_UNITS_MAX),
        (total, 64_000),
    ],
)
def test_limits_are_inclusive(build: Callable[[int], PresentationBuilder], most: int) -> None:
    """The greatest document is shown; one more of anything is refused, never shortened."""
    assert build(most).build()
    with pytest.raises(ProblemsFound) as refused:
        build(most + 1).build()
    assert refused.value.reason_code == "presentationInvalid"


@pytest.mark.parametrize(
    ("shown", "where"),
    [
        (present(" "), "presentation"),
        (present("x").section(""), "presentation.blocks.0.title"),
        (present("x").section("a\nb"), "presentation.blocks.0.title"),
        (present("x").bullets("a", "\x1b[2J"), "presentation.blocks.0.items.1"),
        (present("x").fields(a="\x9b"), "presentation.blocks.0.items.0.value"),
        (present("x").fields(a=""), "presentation.blocks.0.items.0.value"),
        (present("x").preformatted("\x00"), "presentation.blocks.0.text"),
    ],
)
def test_what_no_channel_shows_is_refused(shown: PresentationBuilder, where: str) -> None:
    """Empty parts and control characters are named by their places."""
    with pytest.raises(ProblemsFound) as refused:
        shown.build()
    assert refused.value.problems[0].where == where


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        {},
        {"schema": "other", "summary": "x"},
        {"schema": "pi-workflows.decision-presentation.v1", "summary": "x", "html": "x"},
        {
            "schema": "pi-workflows.decision-presentation.v1",
            "summary": "x",
            "blocks": [{"type": "image"}],
        },
        {
            "schema": "pi-workflows.decision-presentation.v1",
            "summary": "x",
            "blocks": [{"type": "bullets", "items": [["nested"]]}],
        },
    ],
)
def test_only_presentations_are_shown(value: object) -> None:
    """Unknown members and blocks, and nested ones, are refused."""
    with pytest.raises(PayloadInvalid) as refused:
        presentation_of(value)
    assert refused.value.reason_code == "presentationInvalid"
