"""What all models on the wire have in common."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import pytest
from pydantic import Field, Strict, ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import ERROR_CHARS_MAX, FIELD_CHARS_MAX
from pi_workflows.protocol.wire import (
    AbsolutePath,
    AnyJson,
    JsonObject,
    Many,
    Maybe,
    Number,
    SessionPayload,
    WireModel,
    error_line,
    is_run_id,
)


class _Color(StrEnum):
    RED = "red"


class _Inner(WireModel):
    inner_count: Number


class _Outer(WireModel):
    some_text: str
    maybe_number: Maybe[Number] = None
    nullable: str | None
    color: Annotated[_Color, Strict(strict=False)] = _Color.RED
    inners: Many[_Inner] = ()
    by_name: dict[str, _Inner] = Field(default_factory=dict)
    anything: AnyJson = None
    members: JsonObject = Field(default_factory=dict)


_LEAST: Final[dict[str, Json]] = {"someText": "a", "nullable": None}


def test_a_document_has_camel_case_members_and_no_absent_ones() -> None:
    """Optional members that are None are left out; nullable ones are null; the rest is written."""
    full = _Outer(
        some_text="a",
        maybe_number=1,
        nullable="b",
        inners=(_Inner(inner_count=1),),
        by_name={"x": _Inner(inner_count=2)},
        anything=[None],
        members={"y": None},
    )
    assert full.document() == {
        "someText": "a",
        "maybeNumber": 1,
        "nullable": "b",
        "color": "red",
        "inners": [{"innerCount": 1}],
        "byName": {"x": {"innerCount": 2}},
        "anything": [None],
        "members": {"y": None},
    }
    assert _Outer.parse(full.document()) == full
    least = _Outer(some_text="a", maybe_number=None, nullable=None)
    assert least.document() == {
        "someText": "a",
        "nullable": None,
        "color": "red",
        "inners": [],
        "byName": {},
        "members": {},
    }


def test_null_is_a_value_of_any_json() -> None:
    """A member of any JSON that was given as null is written as null, and left out otherwise."""
    assert "anything" not in _Outer.parse(_LEAST).document()
    assert _Outer.parse({**_LEAST, "anything": None}).document()["anything"] is None


def test_any_json_is_not_copied() -> None:
    """A large value passes through a model as the same object, also one that is stored bytes."""
    value: Json = [{"a": 1}]
    assert _Outer.parse({**_LEAST, "anything": value}).anything is value
    stored = _Outer(some_text="a", nullable=None, anything=canonical.fragment(b'{"a":1}'))
    assert b'"anything":{"a":1}' in canonical.encode(stored.document())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"someText": 1}, "someText"),
        ({"someText": None}, "someText"),
        ({"some_text": "a"}, "some_text"),
        ({"unknown": 1}, "unknown"),
        ({"maybeNumber": None}, "maybeNumber"),
        ({"maybeNumber": 0}, "maybeNumber"),
        ({"maybeNumber": 1.0}, "maybeNumber"),
        ({"maybeNumber": True}, "maybeNumber"),
        ({"maybeNumber": "1"}, "maybeNumber"),
        ({"maybeNumber": 2**53}, "maybeNumber"),
        ({"color": "blue"}, "color"),
        ({"inners": {}}, "inners"),
        ({"inners": [{"innerCount": 1}, {}]}, "inners[1].innerCount"),
        ({"inners": [{"innerCount": 1, "x": 1}]}, "inners[0].x"),
        ({"byName": {"x": {"innerCount": None}}}, "byName.x.innerCount"),
        ({"members": []}, "members"),
    ],
)
def test_a_member_at_fault_is_named(change: dict[str, Json], field: str) -> None:
    """Nothing is converted, and the error names the path of the member, in one line."""
    with pytest.raises(PayloadInvalid) as refused:
        _Outer.parse({**_LEAST, **change})
    assert refused.value.field == field
    assert refused.value.message.startswith(f"{field}: ")


def test_a_member_has_one_name() -> None:
    """The name of an attribute is no name on the wire."""
    with pytest.raises(PayloadInvalid) as refused:
        _Outer.parse({"some_text": "a", "nullable": None})
    assert refused.value.field == "someText"


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_what_is_no_object_is_refused(value: Json) -> None:
    """A model is read from an object; the error names the value as its reader calls it."""
    with pytest.raises(PayloadInvalid) as refused:
        _Outer.parse(value, field="payload")
    assert refused.value.message == "payload: must be an object"


def test_an_error_holds_no_content() -> None:
    """What was sent does not come back in the words of a refusal, however long a name is."""
    with pytest.raises(PayloadInvalid) as refused:
        _Outer.parse({**_LEAST, "color": "secret"})
    assert "secret" not in refused.value.message
    with pytest.raises(PayloadInvalid) as refused:
        _Outer.parse({**_LEAST, "x" * 10_000: 1})
    assert refused.value.field is not None
    assert len(refused.value.field) == FIELD_CHARS_MAX


def test_a_model_cannot_be_changed() -> None:
    """Models are frozen."""
    outer = _Outer.parse(_LEAST)
    with pytest.raises(ValidationError):
        outer.some_text = "b"


@pytest.mark.parametrize(
    "path", ["", "a", "./a", "/a/", "/a/../b", "//a/b/c", "/a\0b", "/" + "x" * 4_096]
)
def test_a_path_is_absolute_and_normalized(path: str) -> None:
    """A path that another process could read differently is refused."""

    class _HasPath(WireModel):
        path: AbsolutePath

    with pytest.raises(PayloadInvalid):
        _HasPath.parse({"path": path})
    for good in ("/", "/a", "/a b/ü", "/" + "x" * 4_095):
        assert _HasPath.parse({"path": good}).path == good


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("a", True),
        ("A0._-", True),
        ("x" * 200, True),
        ("x" * 201, False),
        ("", False),
        (".a", False),
        ("-a", False),
        ("a b", False),
        ("a/b", False),
        ("a\n", False),
        ("ä", False),
    ],
)
def test_a_run_id_is_a_file_name(text: str, *, is_good: bool) -> None:
    """A run ID is 1 to 200 letters, digits, `.`, `_` and `-`, and starts with one of the first."""
    assert is_run_id(text) is is_good


def test_a_session_names_itself_wholly() -> None:
    """A session's ID and epoch go together; without both it is a control request."""
    assert not SessionPayload.parse({}).claims_session
    assert SessionPayload.parse({"targetSessionId": "s", "coordinatorEpoch": 1}).claims_session
    for half in ({"targetSessionId": "s"}, {"coordinatorEpoch": 1}):
        with pytest.raises(PayloadInvalid):
            SessionPayload.parse(dict(half))


def test_an_error_line_is_one_line() -> None:
    """Any text becomes one line of at most 1,000 characters."""
    assert error_line(" two\n lines\u2028here ") == "two lines here"
    assert len(error_line("x" * 5_000)) == ERROR_CHARS_MAX
