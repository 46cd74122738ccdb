"""A schema becomes fields where one line is enough to type each of them."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.cli.form import fields_of


class Flat(BaseModel):
    """An answer of single values."""

    note: str = ""
    decision: Literal["ship", "shelve", "hold"]
    count: int = Field(default=3, description="How many")
    share: float | None = None
    urgent: bool


class Nested(BaseModel):
    """An answer that holds another value."""

    decision: str
    parts: list[str]


def test_required_fields_come_first() -> None:
    """What must be given is asked before what may be left out, with its choices and defaults."""
    fields = fields_of(Flat.model_json_schema())
    assert fields is not None
    assert [field.prompt() for field in fields] == [
        "  decision (ship or shelve or hold)",
        "  urgent (yes or no)",
        "  note (text, optional)",
        "  count (integer, by default 3)",
        "  share (number, optional)",
    ]
    assert fields[3].described() == "count: integer, by default 3. How many"


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("decision", "ship", "ship"),
        ("decision", "h", "hold"),
        ("urgent", "Yes", True),
        ("urgent", "n", False),
        ("count", "12", 12),
        ("share", "0.5", 0.5),
        ("note", "12", "12"),
    ],
)
def test_what_is_typed_becomes_a_value(name: str, typed: str, value: Json) -> None:
    """A line is read as its field's type; the beginning of a choice is enough."""
    fields = fields_of(Flat.model_json_schema())
    assert fields is not None
    field = next(field for field in fields if field.name == name)
    assert field.read(typed) == value


@pytest.mark.parametrize(
    ("name", "typed"), [("decision", "sh"), ("decision", "x"), ("urgent", "maybe"), ("count", "x")]
)
def test_what_means_nothing_is_refused(name: str, typed: str) -> None:
    """Two choices that begin so, no choice, and another type are refused with the field's name."""
    fields = fields_of(Flat.model_json_schema())
    assert fields is not None
    field = next(field for field in fields if field.name == name)
    with pytest.raises(PayloadInvalid, match=name):
        field.read(typed)


@pytest.mark.parametrize(
    "schema",
    [
        Nested.model_json_schema(),
        {"type": "string"},
        {"type": "object", "properties": {}},
        {"type": "object"},
        None,
        True,
    ],
)
def test_other_answers_are_typed_as_a_whole(schema: Json) -> None:
    """What is no flat object of single values has no fields."""
    assert fields_of(schema) is None
