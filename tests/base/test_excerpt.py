"""A text is found whatever its case, and shown in one line around the place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.excerpt import excerpt, found, readable

WORDS = st.text(max_size=400)


@pytest.mark.parametrize(
    ("text", "query", "match"),
    [
        ("No Space left", "SPACE", "Space"),
        ("Ein Gruß an alle", "GRUSS", "Gruß"),
        ("Ein Gruß an alle", "s an", "ß an"),
        ("ßß needle", "Needle", "needle"),
        ("ΟΔΟΣ", "οδος", "ΟΔΟΣ"),
        ("İstanbul needle", "needle", "needle"),
    ],
)
def test_a_match_is_whole_characters(text: str, query: str, match: str) -> None:
    """Characters that fold into several are found by any of them, and none is cut in two."""
    place = found(text, query.casefold())
    assert place is not None
    assert text[slice(*place)] == match


@given(WORDS, WORDS, st.text(min_size=1, max_size=160))
def test_what_is_there_is_found(before: str, after: str, query: str) -> None:
    """Wherever a query stands, in either case, a match folds to what holds it."""
    for inside in (query, query.upper(), query.lower()):
        text = f"{before}{inside}{after}"
        place = found(text, inside.casefold())
        assert place is not None
        assert inside.casefold() in text[slice(*place)].casefold()


@given(WORDS, st.text(min_size=1, max_size=160))
def test_what_is_not_there_is_not_found(text: str, query: str) -> None:
    """There is a match if and only if the folded text holds the folded query."""
    assert (found(text, query.casefold()) is not None) == (query.casefold() in text.casefold())


@given(WORDS, st.text(min_size=1, max_size=200), WORDS, st.integers(2, 160))
def test_an_excerpt_is_a_line_with_its_match(
    before: str, match: str, after: str, chars_max: int
) -> None:
    """At most so many characters, no line break, and the match, or its beginning, in its place."""
    text = f"{before}{match}{after}"
    line = excerpt(text, len(before), len(before) + len(match), chars_max)
    assert len(line.text) <= chars_max
    assert len(line.text) == min(chars_max, len(text))
    assert line.text.splitlines() in ([], [line.text])
    assert 0 <= line.start <= line.end <= len(line.text)
    shown = line.text[line.start : line.end]
    plain = excerpt(match, 0, 0, len(match) + 2).text
    assert plain.startswith(shown)
    if len(match) + 4 <= chars_max:
        assert shown == plain


@given(st.dictionaries(st.text(), st.text()), st.lists(st.text()))
def test_strings_are_read_as_they_were_written(members: dict[str, str], items: list[str]) -> None:
    """Every string and every key of a JSON value stands in its readable text."""
    value: list[canonical.Json] = [dict(members), *items]
    text = readable(canonical.encode(value), "application/json")
    assert all(each in text for each in (*members, *members.values(), *items))


def test_a_beginning_is_read_up_to_the_last_whole_character() -> None:
    """A value that ends inside a character or an escape loses no more than that."""
    content = canonical.encode("aé\n")
    texts = [readable(content[:length], "application/json") for length in range(len(content) + 1)]
    assert texts == ["", '"', '"a', '"a', '"aé', '"aé\\', '"aé\n', '"aé\n"']


def test_text_is_no_json() -> None:
    """What looks like an escape in a text stands there."""
    assert readable(rb"C:\new", "text/plain") == r"C:\new"
