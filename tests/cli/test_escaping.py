"""No text of a run can command a terminal, hide itself or forge a line."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.cli.escaping import escaped, escaped_json, escaped_lines

# Joiners that scripts and emoji need, and format characters that are seen: signs around numbers
# and words.
HARMLESS = {*"\u200c\u200d", *map(chr, range(0x600, 0x606))} | {
    *"\u06dd\u070f\u0890\u0891\u08e2",
    *"\U000110bd\U000110cd",
    *map(chr, range(0x13430, 0x13440)),
}
UNSAFE_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def unsafe() -> list[str]:
    """Return every character that must not reach a terminal as it is."""
    return [
        each
        for each in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(each) in UNSAFE_CATEGORIES and each not in HARMLESS
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x9b2J\x85", r"\x9b2J\x85"),
        ("\x7f\x00", r"\x7f\x00"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("\u2066a\u2069\u200f", r"\u2066a\u2069\u200f"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\ufeff\u00ad\u200b", r"\ufeff\xad\u200b"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_a_command_is_shown_and_not_obeyed(text: str, shown: str) -> None:
    """Escapes, C0 and C1 controls, turned and hidden text, and separators become visible."""
    assert escaped(text) == shown


@pytest.mark.parametrize("text", ["plain", "Grüße", "日本語", "👩\u200d💻", "a b\u00a0c", "\\n"])
def test_ordinary_text_stays(text: str) -> None:
    """Letters of every script, emoji and spaces come back as they are."""
    assert escaped(text) == text


def test_every_unsafe_character_is_escaped() -> None:
    """Of all characters of Unicode none that controls, hides or separates is let through."""
    assert [hex(ord(each)) for each in unsafe() if escaped(each) == each] == []


@given(st.text(st.characters(codec=None)))
def test_what_is_escaped_is_one_safe_line(text: str) -> None:
    """Whatever the text, the result is one line without an unsafe character, and stays so."""
    shown = escaped(text)
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(each) for each in shown if each not in HARMLESS}.intersection(
        UNSAFE_CATEGORIES
    )
    assert escaped(shown) == shown


def test_lines_are_kept_apart_and_tabs_are_spaces() -> None:
    """Text of several lines becomes lines, each of them safe."""
    assert escaped_lines("a\tb\r\n\x1b[2J\nend") == ["a       b", r"\x1b[2J", "end"]


@given(st.recursive(st.text() | st.integers(-5, 5) | st.none(), st.lists))
def test_json_on_a_terminal_means_the_same(value: canonical.Json) -> None:
    """Escaped JSON is safe to show and decodes to the same value."""
    text = escaped_json(canonical.encode(value).decode())
    assert escaped(text) == text
    assert canonical.decode(text.encode()) == value


def test_json_escapes_pairs_beyond_the_first_plane() -> None:
    """A character beyond the first plane becomes the two escapes that JSON has for it."""
    assert escaped_json('"\U000e0041\x9b"') == r'"\udb40\udc41\u009b"'
