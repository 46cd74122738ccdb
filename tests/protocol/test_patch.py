"""Changes of a JSON document: what they give, what they refuse, and that the old one stays."""

from __future__ import annotations

import copy
import doctest
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import FRAME_DEPTH_MAX
from pi_workflows.protocol import patch
from pi_workflows.protocol.patch import apply
from pi_workflows.protocol.run_patch import PatchOperation

_NAMES = st.sampled_from(["", "a", "b", "~", "/", "~1", "0", "1", "-", "é"])
_SCALARS: st.SearchStrategy[Json] = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=3)
)
_DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=20,
)


def _pointers(document: Json, at: str = "") -> Iterator[str]:
    """Yield the pointer of every value in a document."""
    yield at
    if isinstance(document, dict):
        for name, member in document.items():
            escaped = name.replace("~", "~0").replace("/", "~1")
            yield from _pointers(member, f"{at}/{escaped}")
    elif isinstance(document, list):
        for index, item in enumerate(document):
            yield from _pointers(item, f"{at}/{index}")


@st.composite
def _operations(draw: st.DrawFn, document: Json) -> PatchOperation:
    """Draw an operation that mostly has a place in the document."""
    path = draw(st.sampled_from(sorted(_pointers(document))))
    path += draw(st.sampled_from(["", "", "/a", "/0", "/1", "/4", "/-", "/01", "/~", "x", "/~0"]))
    kind = draw(st.sampled_from(["add", "replace", "remove", "append"]))
    value = st.lists(_SCALARS, max_size=3) if kind == "append" else _DOCUMENTS
    members: dict[str, Json] = {"op": kind, "path": path}
    if kind != "remove":
        members["value"] = draw(value)
    return PatchOperation.parse(members)


class _Wrong(Exception):
    """The reference does not know what to do."""


def _reference(document: Json, operation: PatchOperation) -> Json:
    """Change a copy in place, step by step, as RFC 6901 and RFC 6902 read."""
    holder: dict[str, Json] = {"root": copy.deepcopy(document)}
    parts = operation.path.split("/")
    if parts[0]:
        raise _Wrong
    if any("~" in part.replace("~0", "").replace("~1", "") for part in parts):
        raise _Wrong
    tokens = ["root", *(part.replace("~1", "/").replace("~0", "~") for part in parts[1:])]
    where: Json = holder
    for token in tokens[:-1]:
        where = _inside(where, token)
    value: Json = copy.deepcopy(operation.value)
    last = tokens[-1]
    if operation.op == "add" and isinstance(where, dict):
        where[last] = value
    elif operation.op == "add" and isinstance(where, list):
        where.insert(len(where) if last == "-" else _place(last, len(where)), value)
    elif operation.op == "append":
        target = _inside(where, last)
        if not isinstance(target, list) or not isinstance(value, list):
            raise _Wrong
        target.extend(value)
    else:
        _inside(where, last)
        _put(where, last, operation, value)
    if "root" not in holder:
        raise _Wrong
    return holder["root"]


def _inside(where: Json, token: str) -> Json:
    """Return what a container has under a token."""
    if isinstance(where, dict) and token in where:
        return where[token]
    if isinstance(where, list):
        return where[_place(token, len(where) - 1)]
    raise _Wrong


def _put(where: Json, token: str, operation: PatchOperation, value: Json) -> None:
    """Put a value into the place of another, or take that out."""
    if isinstance(where, dict):
        where[token] = value
        if operation.op == "remove":
            del where[token]
    elif isinstance(where, list):
        where[int(token)] = value
        if operation.op == "remove":
            del where[int(token)]


def _place(token: str, greatest: int) -> int:
    """Return the index that a token says."""
    for number in range(greatest + 1):
        if str(number) == token:
            return number
    raise _Wrong


@given(st.data())
def test_changes_are_those_of_the_standards(data: st.DataObject) -> None:
    """Every operation gives, or is refused, as a copy that is changed step by step."""
    document = data.draw(_DOCUMENTS)
    before = copy.deepcopy(document)
    for _ in range(3):
        operation = data.draw(_operations(document))
        try:
            expected = _reference(document, operation)
        except _Wrong:
            with pytest.raises(ProtocolViolation):
                apply(document, [operation])
            continue
        changed = apply(document, [operation])
        assert changed == expected
        assert document == before
        document, before = changed, copy.deepcopy(changed)


@given(st.data())
def test_one_patch_is_its_operations_one_by_one(data: st.DataObject) -> None:
    """Operations see what those before them did; a base stands before every path."""
    document = data.draw(_DOCUMENTS)
    operations: list[PatchOperation] = []
    changed = document
    for _ in range(3):
        operation = data.draw(_operations(changed))
        try:
            changed = apply(changed, [operation])
        except ProtocolViolation:
            continue
        operations.append(operation)
    assert apply(document, operations) == changed
    wrapped: Json = {"a/b": [{"": document}], "~": 1}
    assert apply(wrapped, operations, base="/a~1b/0/") == {"a/b": [{"": changed}], "~": 1}


def test_what_is_beside_the_way_is_shared() -> None:
    """Only the containers on the way to a change are new."""
    document: dict[str, Json] = {"a": {"b": [1, {"c": 2}], "d": {}}, "e": [[]]}
    operation = PatchOperation(op="replace", path="/a/b/1/c", value=3)
    changed = apply(document, [operation])
    assert isinstance(changed, dict)
    old, new = document["a"], changed["a"]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert changed["e"] is document["e"]
    assert new["d"] is old["d"]
    assert new["b"] is not old["b"]
    assert document == {"a": {"b": [1, {"c": 2}], "d": {}}, "e": [[]]}


@pytest.mark.parametrize(
    ("op", "path", "code"),
    [
        ("replace", "a", "pointerInvalid"),
        ("replace", "/~2", "pointerInvalid"),
        ("replace", "/a~", "pointerInvalid"),
        ("replace", "/a" * (FRAME_DEPTH_MAX + 1), "pointerTooDeep"),
        ("replace", "/b", "memberMissing"),
        ("remove", "/b", "memberMissing"),
        ("append", "/b", "memberMissing"),
        ("add", "/b/c", "memberMissing"),
        ("remove", "/items/-", "memberMissing"),
        ("replace", "/items/2", "memberMissing"),
        ("add", "/items/3", "memberMissing"),
        ("replace", f"/items/{'9' * 5_000}", "memberMissing"),
        ("replace", "/items/01", "indexInvalid"),
        ("add", "/items/+1", "indexInvalid"),
        ("add", "/items/-1", "indexInvalid"),
        ("replace", "/items/\u0661", "indexInvalid"),
        ("add", "/items/", "indexInvalid"),
        ("add", "/items/a/0", "indexInvalid"),
        ("add", "/a/b", "notContainer"),
        ("append", "/a", "notArray"),
        ("append", "", "notArray"),
        ("remove", "", "rootRemoved"),
    ],
)
def test_a_fault_has_a_code(op: str, path: str, code: str) -> None:
    """Each way to be wrong has a code of its own, and its words hold nothing of the path."""
    members: dict[str, Json] = {"op": op, "path": path}
    if op != "remove":
        members["value"] = []
    with pytest.raises(ProtocolViolation) as violation:
        apply({"a": "text", "items": [1, 2]}, [PatchOperation.parse(members)])
    assert violation.value.reason_code == code
    assert "~" not in violation.value.message
    assert "/" not in violation.value.message


@pytest.mark.parametrize(
    "members",
    [
        {"op": "add", "path": "/a"},
        {"op": "append", "path": "/a"},
        {"op": "append", "path": "/a", "value": {"0": 1}},
        {"op": "append", "path": "/a", "value": "text"},
        {"op": "append", "path": "/a", "value": None},
        {"op": "remove", "path": "/a", "value": None},
        {"op": "test", "path": "/a", "value": 1},
        {"op": "move", "path": "/a", "from": "/b"},
        {"op": "add", "path": 1, "value": 1},
        {"op": "add", "path": "/a", "value": 1, "more": 1},
    ],
)
def test_an_operation_has_what_it_needs(members: dict[str, Json]) -> None:
    """A value where there is one and nowhere else, an array to append, no other operation."""
    with pytest.raises(PayloadInvalid):
        PatchOperation.parse(members)


def test_null_is_a_value() -> None:
    """Null is set, kept in the document and in the operation's own."""
    members: dict[str, Json] = {"op": "add", "path": "/a", "value": None}
    operation = PatchOperation.parse(members)
    assert operation.document() == members
    assert apply({}, [operation]) == {"a": None}


def test_the_example_of_the_module_is_true() -> None:
    """What the docstring shows happens."""
    assert doctest.testmod(patch).failed == 0
