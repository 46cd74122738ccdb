"""Finding a text in another, whatever the case, and a line around the place."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import Final, NamedTuple

from pi_workflows.base.blob import MediaType
from pi_workflows.base.limits import EXCERPT_CHARS_MAX

# What stands before a match leaves most of the line for what follows.
_BEFORE_CHARS: Final = 40
_BEFORE_SHARE: Final = 3
_ELLIPSIS: Final = "…"
# What breaks a line stands as a space in it: every character keeps its place.
_BREAK: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-f]{4})|(["\\bfnrt]))')
_CHARACTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Excerpt(NamedTuple):
    """A line around a match.

    Attributes:
        text: At most 160 characters.
        start: Where the match begins in it.
        end: Where it ends, which is the end of the text when the match does not fit.
    """

    text: str
    start: int
    end: int


def readable(content: bytes, media_type: MediaType) -> str:
    """Return the text of a stored value, or of its beginning.

    Args:
        content: Canonical JSON or UTF-8 text; the end may be missing, inside a character too.
        media_type: Which of both.

    Returns:
        A text as it is; JSON with the characters that its strings stand for.
    """
    text = content.decode(errors="ignore")
    if media_type == "text/plain" or "\\" not in text:
        return text
    return _ESCAPE.sub(_character, text)


def found(text: str, query: str) -> tuple[int, int] | None:
    """Return where a text holds the query first.

    Args:
        text: The text.
        query: What is looked for, case folded.

    Returns:
        The first character of the match and the one behind it; None without one.
    """
    folded = text.casefold()
    start = folded.find(query)
    if start < 0:
        return None
    end = start + len(query)
    if len(folded) == len(text):
        return start, end
    # Some characters fold into several: a match holds whole ones.
    ends = list(accumulate(len(character.casefold()) for character in text))
    return bisect_right(ends, start), bisect_right(ends, end - 1) + 1


def excerpt(text: str, start: int, end: int, chars_max: int = EXCERPT_CHARS_MAX) -> Excerpt:
    """Return a line around a match.

    Args:
        text: The text that holds it.
        start: Where it begins.
        end: Where it ends.
        chars_max: How long the line may be; at least two.

    Returns:
        The whole text when it fits; else a part that begins shortly before the match, with an
        ellipsis where something was cut off.
    """
    before = min(_BEFORE_CHARS, max(0, chars_max - (end - start)) // _BEFORE_SHARE)
    # One more character, in whose place the ellipsis stands.
    first = max(0, min(start - before - 1, len(text) - chars_max))
    head = _ELLIPSIS if first > 0 else ""
    tail = _ELLIPSIS if first + chars_max < len(text) else ""
    last = min(len(text), first + chars_max) - len(tail)
    shown = _BREAK.sub(" ", text[first + len(head) : last])
    return Excerpt(f"{head}{shown}{tail}", start - first, min(end, last) - first)


def _character(match: re.Match[str]) -> str:
    """Return the character that an escape stands for."""
    code, letter = match[1], match[2]
    return chr(int(code, 16)) if code else _CHARACTERS.get(letter, letter)
