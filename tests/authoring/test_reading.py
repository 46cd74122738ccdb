"""Reading JSON out of what a model wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.authoring.reading import Reading, found_json, whole_json
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import JSON_SCANS_MAX

VALUE: Json = {"route": "clean", "parts": [1, {"a": "}]"}]}
TEXT = canonical.encode(VALUE).decode()


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n  {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\n",
        f"Here it is:\n```json\n{TEXT}\n```\nAnything else?",
        f"```python\nprint(1)\n```\n```json\n{TEXT}\n```",
        f"I think that {TEXT} is right.",
        f"The set {{x}} and [the list] say {TEXT}, not {{}}.",
        f"{{ {TEXT}",
        f'He said "{{" and then {TEXT}',
    ],
)
def test_the_first_value_is_found(text: str) -> None:
    """Directly, in the first fence that holds JSON, or as the first balanced value that is JSON."""
    assert found_json(text) == Reading(VALUE)


@pytest.mark.parametrize(
    "text",
    ["", "no value", "{x}", '{"a": 1', '{"a": NaN}', '{"a": 1, "a": 2}', "```json\n{x}\n```", "[1"],
)
def test_what_holds_no_json_is_not_read(text: str) -> None:
    """Nothing is guessed: what two readers could take differently is no value either."""
    assert found_json(text) is None


def test_a_whole_text_is_read_without_looking_inside() -> None:
    """A sentence that quotes a value is a sentence."""
    assert whole_json(f"I think that {TEXT} is right.") is None
    assert whole_json(f"```json\n{TEXT}\n```") == Reading(VALUE)
    assert whole_json("null") == Reading(None)


def test_so_many_brackets_are_looked_at() -> None:
    """A value behind the last bracket that is looked at is not found; one before it is."""
    noise = "{x} "
    assert found_json(noise * (JSON_SCANS_MAX - 1) + '{"a":1}') == Reading({"a": 1})
    assert found_json(noise * JSON_SCANS_MAX + '{"a":1}') is None


@pytest.mark.parametrize("unit", ["{", "[", '{"', '{"\\"', "[]{", "```\n", '"', "\\"])
def test_no_text_takes_long(unit: str) -> None:
    """A long text of anything is looked through a bounded number of times."""
    found_json(unit * (100_000 // len(unit)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    ).filter(lambda value: isinstance(value, dict | list)),
    st.text(alphabet="abc .,\n'", max_size=20),
)
def test_any_value_is_found_in_prose(value: Json, prose: str) -> None:
    """An object or a list is found whatever it holds, wherever it stands."""
    try:
        text = canonical.encode(value).decode()
    except ValueError:
        return
    assert found_json(f"{prose}{text}{prose}") == Reading(canonical.decode(text.encode()))
