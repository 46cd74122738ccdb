"""Patches of settings: what the standard says, who may do what where, limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import AuthorityDenied, LimitExceeded, PayloadInvalid, Refused
from pi_workflows.definition.settings import PathRule, SettingsPolicy
from pi_workflows.domain.settings.patch import patched

VALUE: Json = {"a": {"b": 1, "c": True}, "list": [1, 2, 3], "name": "abc", "locked": {"x": 1}}
OPEN = PathRule(
    pointer="",
    read=("control",),
    add=("control",),
    remove=("control",),
    replace=("control",),
)
LOCKED = PathRule(pointer="/locked", replace=("human",))


def policy(*rules: PathRule) -> SettingsPolicy:
    """Return settings with these rules."""
    return SettingsPolicy(mount="", model="m", paths=rules)


def apply(*operations: Json, rules: tuple[PathRule, ...] = (OPEN,), value: Json = VALUE) -> Json:
    """Apply operations as a control request."""
    patch: list[Json] = list(operations)
    return patched(value, patch, policy(*rules), "control")


def code(*operations: Json, rules: tuple[PathRule, ...] = (OPEN,), value: Json = VALUE) -> str:
    """Return why operations are refused."""
    with pytest.raises(Refused) as refusal:
        apply(*operations, rules=rules, value=value)
    return refusal.value.reason_code


def replace(path: str, value: Json) -> Json:
    """Return an operation that replaces."""
    return {"op": "replace", "path": path, "value": value}


def test_the_standards_operations_do_what_it_says() -> None:
    """All six, in order, each on what the one before left; the value that came is unchanged."""
    before = canonical.encode(VALUE)
    assert apply(
        {"op": "test", "path": "/a/c", "value": True},
        {"op": "add", "path": "/list/-", "value": 4},
        {"op": "remove", "path": "/list/0"},
        {"op": "copy", "from": "/a", "path": "/d"},
        {"op": "move", "from": "/a/b", "path": "/moved"},
        replace("/name", "new"),
    ) == {
        "a": {"c": True},
        "d": {"b": 1, "c": True},
        "list": [2, 3, 4],
        "locked": {"x": 1},
        "moved": 1,
        "name": "new",
    }
    assert canonical.encode(VALUE) == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/c", "value": 1},
        {"op": "test", "path": "/a/b", "value": True},
        {"op": "test", "path": "/name/0", "value": "a"},
        {"op": "replace", "path": "/list/01", "value": 1},
        {"op": "replace", "path": "/list/-1", "value": 1},
        {"op": "replace", "path": "/list/-", "value": 1},
        {"op": "add", "path": "/list/4", "value": 1},
        {"op": "add", "path": "/nowhere/x", "value": 1},
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/nowhere"},
        {"op": "move", "from": "/a", "path": "/a/b"},
        {"op": "append", "path": "/name", "value": "x"},
        {"op": "add", "path": "/x"},
        {"op": "copy", "path": "/x"},
        {"path": "/x", "value": 1},
        {"op": "add", "path": 1, "value": 1},
        "remove",
    ],
    ids=str,
)
def test_what_is_no_patch_or_does_not_fit_is_refused(operation: Json) -> None:
    """Among it what looser readers take: an index like 01, a walk into text, true for 1."""
    assert code(operation) == "patchInvalid"


@pytest.mark.parametrize("pointer", ["name", "/a~2b", "/a~", "/" + "x" * 1_024])
def test_a_pointer_is_one_of_the_standard_and_at_most_1_kib(pointer: str) -> None:
    """What begins otherwise, escapes otherwise or is too long names nothing."""
    assert code(replace(pointer, 1)) == "pointerInvalid"


def test_nothing_is_allowed_that_no_rule_allows() -> None:
    """Without rules, and beside the places that they name."""
    rule = PathRule(pointer="/a", replace=("control",))
    assert code(replace("/name", 1), rules=()) == "settingsDenied"
    assert code(replace("/name", 1), rules=(rule,)) == "settingsDenied"
    assert code(replace("", {}), rules=(rule,)) == "settingsDenied"
    assert apply(replace("/a/b", 2), rules=(rule,))


def test_the_most_specific_rule_decides_alone() -> None:
    """It may take away what the one above it gives, and give what that one does not."""
    inner = PathRule(pointer="/a/b", add=("control",))
    assert code(replace("/a/b", 2), rules=(OPEN, inner)) == "settingsDenied"
    outer = PathRule(pointer="/a", add=("human",))
    given = PathRule(pointer="/a/b", replace=("control",))
    assert apply(replace("/a/b", 2), rules=(outer, given))


def test_to_add_where_something_stands_is_to_replace_it() -> None:
    """The permission is that of what happens, not of the word; into a list it is to add."""
    adds = PathRule(pointer="", add=("control",))
    assert code({"op": "add", "path": "/name", "value": 1}, rules=(adds,)) == "settingsDenied"
    assert apply({"op": "add", "path": "/new", "value": 1}, rules=(adds,))
    assert apply({"op": "add", "path": "/list/0", "value": 1}, rules=(adds,))


@pytest.mark.parametrize(
    "operation",
    [
        replace("", {"locked": {"x": 2}}),
        {"op": "remove", "path": "/locked"},
        {"op": "move", "from": "/locked", "path": "/free"},
        {"op": "move", "from": "/name", "path": "/locked"},
        {"op": "copy", "from": "/a", "path": "/locked"},
        {"op": "copy", "from": "/locked", "path": "/free"},
        {"op": "copy", "from": "", "path": "/free"},
        {"op": "test", "path": "", "value": VALUE},
        {"op": "test", "path": "/locked/x", "value": 1},
    ],
    ids=str,
)
def test_a_part_with_a_rule_of_its_own_is_reached_by_no_other_way(operation: Json) -> None:
    """Not by its whole, not by moving it away or over it, and not by looking at it."""
    assert code(operation, rules=(OPEN, LOCKED)) == "settingsDenied"


def test_the_whole_may_be_replaced_around_a_part_that_stays() -> None:
    """What does not change needs no permission."""
    value: Json = {"locked": {"x": 1}, "name": "other"}
    assert apply(replace("", value), rules=(OPEN, LOCKED)) == value


def test_an_item_with_a_rule_is_not_pushed_aside() -> None:
    """What happens before it in its list changes what stands at its place."""
    item = PathRule(pointer="/list/1", replace=("human",))
    operations: list[Json] = [
        {"op": "remove", "path": "/list/0"},
        {"op": "add", "path": "/list/0", "value": 0},
        {"op": "move", "from": "/list/0", "path": "/list/2"},
    ]
    for operation in operations:
        assert code(operation, rules=(OPEN, item)) == "settingsDenied"
    assert apply({"op": "add", "path": "/list/-", "value": 4}, rules=(OPEN, item))


def test_limits() -> None:
    """256 operations, 64 KiB of a patch, 256 KiB of a value, and no doubling in between."""
    assert code(*[replace("/name", "x")] * 257) == "patchTooLarge"
    assert code(replace("/name", "x" * 65_536)) == "patchTooLarge"
    large: Json = {"a": "x" * 210_000}
    assert code({"op": "add", "path": "/b", "value": "x" * 60_000}, value=large) == (
        "settingsTooLarge"
    )
    doubling: list[Json] = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(256)]
    with pytest.raises(LimitExceeded):
        apply(*doubling)
    assert code() == "patchInvalid"


def test_a_refusal_says_where() -> None:
    """The operation's place is its field."""
    with pytest.raises(AuthorityDenied) as denied:
        apply(replace("/name", "x"), replace("/locked", 1), rules=(OPEN, LOCKED))
    assert denied.value.field == "patch[1]"
    with pytest.raises(PayloadInvalid) as invalid:
        apply(replace("/name", "x"), replace("/nowhere", 1))
    assert invalid.value.field == "patch[1]"


_NAMES = st.sampled_from(["a", "b", "locked"])
_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.integers(0, 2) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)
_POINTERS = st.lists(_NAMES | st.sampled_from(["0", "1", "-"]), max_size=3).map(
    lambda tokens: "".join(f"/{token}" for token in tokens)
)
_OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": _POINTERS,
        "from": _POINTERS,
        "value": _VALUES,
    }
)


@given(st.dictionaries(_NAMES, _VALUES), st.lists(_OPERATIONS, min_size=1, max_size=4))
def test_no_patch_changes_what_nobody_may_change(
    value: dict[str, Json], operations: list[dict[str, Json]]
) -> None:
    """Whatever is tried, a part whose rule allows nothing is afterwards what it was before."""
    patch: list[Json] = [*operations]
    try:
        after = patched(value, patch, policy(OPEN, PathRule(pointer="/locked")), "control")
    except Refused:
        return
    assert isinstance(after, dict) or "locked" not in value
    kept = after.get("locked") if isinstance(after, dict) else None
    assert canonical.encode(kept) == canonical.encode(value.get("locked"))
    assert ("locked" in value) == (isinstance(after, dict) and "locked" in after)
