"""Values on the command line: JSON or text, written out, from a file, from standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import WrongUsage
from pi_workflows.cli.values import json_or_text, json_value


@pytest.mark.parametrize(
    ("typed", "is_text", "value"),
    [
        ('{"a":1}', False, {"a": 1}),
        ("true", False, True),
        ("true", True, "true"),
        ("ship it", False, "ship it"),
        ('{"a":1,"a":2}', False, '{"a":1,"a":2}'),
        ("", False, ""),
    ],
)
def test_an_answer_is_json_if_it_parses(typed: str, is_text: bool, value: Json) -> None:  # noqa: FBT001
    """What is no JSON is text, and `--text` makes text of everything."""
    assert json_or_text(typed, field="VALUE", is_text=is_text) == value


def test_a_value_in_a_file(tmp_path: Path) -> None:
    """`@FILE` is the file's content; text loses the newline that an editor adds."""
    file = tmp_path / "value"
    file.write_text('{"a": [1]}\n')
    assert json_value(f"@{file}", field="--input") == {"a": [1]}
    file.write_text("two\nlines\n")
    assert json_or_text(f"@{file}", field="VALUE", is_text=False) == "two\nlines"


def test_a_value_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is what comes in."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1, 2]")))
    assert json_value("-", field="--input") == [1, 2]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\xfe", "notUtf8"),
        (b"{", "notJson"),
        (b"1e999", "numberNotFinite"),
        (b'"\\ud800"', "loneSurrogate"),
    ],
)
def test_json_that_is_none(content: bytes, code: str, tmp_path: Path) -> None:
    """Bytes that are no JSON are refused by the option's name and the file's."""
    file = tmp_path / "value"
    file.write_bytes(content)
    with pytest.raises(WrongUsage, match=f"--input: {file} is not acceptable JSON") as caught:
        json_value(f"@{file}", field="--input")
    assert (caught.value.reason_code, caught.value.exit_code) == (code, 2)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """An answer that is neither JSON nor UTF-8 is refused."""
    file = tmp_path / "value"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(WrongUsage, match="neither JSON nor UTF-8"):
        json_or_text(f"@{file}", field="VALUE", is_text=False)


def test_an_argument_that_is_no_utf8() -> None:
    """Bytes of the command line that are no text never become a value."""
    with pytest.raises(WrongUsage):
        json_or_text("a\udcff", field="VALUE", is_text=True)
