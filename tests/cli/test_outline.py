"""A value as people read it is complete, safe and without the marks of JSON."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.cli.outline import value_line, value_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("text", ["text"]),
        ("", ["(empty)"]),
        (None, ["null"]),
        (1.5, ["1.5"]),
        ([], ["(none)"]),
        ({}, ["{}"]),
        ({"a": 1, "b": True}, ["a: 1", "b: true"]),
        ({"a": {"b": ["x", "y"]}}, ["a:", "  b:", "    - x", "    - y"]),
        ([{"a": 1, "b": 2}, {"a": 3}], ["- a: 1", "  b: 2", "- a: 3"]),
        ({"text": "one\ntwo\n"}, ["text:", "  one", "  two"]),
        ({"\x1b[2J": "\x9b"}, [r"\x1b[2J: \x9b"]),
        (
            {
                "$artifact": {
                    "path": f"artifacts/sha256/{'0' * 64}.json",
                    "mediaType": "application/json",
                    "bytes": 20_480,
                    "sha256": "0" * 64,
                    "opaque": True,
                }
            },
            ["(20 KiB, not shown here)"],
        ),
        ({"$artifact": {"bytes": 20_480}}, ["$artifact:", "  bytes: 20480"]),
    ],
)
def test_lines(value: Json, lines: list[str]) -> None:
    """Names and values, indented; content that was left out is told by its size."""
    assert value_lines(value) == lines


@given(JSON)
def test_every_line_is_safe(value: Json) -> None:
    """Whatever a run gave, no line of it holds a control character or another line."""
    for line in (*value_lines(value), value_line(value, chars_max=20)):
        assert not {unicodedata.category(each) for each in line}.intersection({"Cc", "Zl", "Zp"})


def test_long_values_are_cut_and_counted() -> None:
    """What does not fit is counted, in lines and in characters."""
    numbers: list[Json] = list(range(10))
    assert value_lines(numbers, lines_max=2) == ["- 0", "- 1", "… 8 more lines"]
    assert value_line(numbers, chars_max=6) == "[0,1,…"
