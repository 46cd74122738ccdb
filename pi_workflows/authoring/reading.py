"""Reading JSON out of what a model wrote: as it stands, in a fence, or somewhere in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import JSON_SCANS_MAX, VALUE_DEPTH_MAX

_FENCE: Final = re.compile(r"```[^\n`]*\n(?P<body>.*?)\n?[ \t]*```", re.DOTALL)
_OPENING: Final = re.compile(r"[{\[]")
_MARK: Final = re.compile(r'["{}\[\]]')
# The rest of a string of JSON. Possessive, so that one that never ends costs one look.
_STRING_REST: Final = re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """A JSON value that stands in a text."""

    value: Json


def whole_json(text: str) -> Reading | None:
    """Return the JSON that a text is, alone or as the one fence that it consists of."""
    stripped = text.strip()
    fence = _FENCE.fullmatch(stripped)
    return _read(stripped) or (_read(fence["body"]) if fence is not None else None)


def found_json(text: str) -> Reading | None:
    """Return the first JSON value that a text holds (the engine contract, "Requests").

    Args:
        text: What a model wrote.

    Returns:
        The text itself when it is JSON; else the first fenced block that is; else the first object
        or array whose brackets balance and that is JSON, looked for at 64 opening brackets at most.
        None when there is none.
    """
    found = whole_json(text)
    if found is not None:
        return found
    fences = (match["body"] for match in _FENCE.finditer(text))
    for candidate in chain(islice(fences, JSON_SCANS_MAX), _balanced_values(text)):
        found = _read(candidate)
        if found is not None:
            return found
    return None


def _balanced_values(text: str) -> Iterator[str]:
    """Yield what stands between balanced brackets, in the order of the opening ones."""
    for opening in islice(_OPENING.finditer(text), JSON_SCANS_MAX):
        value = _balanced(text, opening.start())
        if value is not None:
            yield value


def _balanced(text: str, start: int) -> str | None:
    """Return the text from an opening bracket to the one that closes it."""
    depth = 0
    position = start
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if mark[0] == '"':
            rest = _STRING_REST.match(text, position)
            if rest is None:
                return None
            position = rest.end()
        elif mark[0] in "{[":
            depth += 1
            if depth > VALUE_DEPTH_MAX:
                return None
        else:
            depth -= 1
            if depth == 0:
                return text[start:position]
    return None


def _read(text: str) -> Reading | None:
    try:
        return Reading(canonical.decode(canonical.utf8(text.strip())))
    except PayloadInvalid:
        return None
