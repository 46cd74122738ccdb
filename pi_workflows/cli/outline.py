"""A JSON value as people read it: names and values, indented; no braces, no quotes."""

from __future__ import annotations

from collections.abc import Iterator

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.cli.content import size_of
from pi_workflows.cli.escaping import escaped, escaped_lines
from pi_workflows.cli.measures import plural, size

_STEP = "  "


def value_lines(value: Json, *, lines_max: int | None = None) -> list[str]:
    """Return a value as lines that are safe to show.

    Args:
        value: Any JSON, as a view holds it: a reference is told by its size.
        lines_max: More lines than this are counted and left out.
    """
    lines = list(_block(value))
    if lines_max is None or len(lines) <= lines_max:
        return lines
    return [*lines[:lines_max], f"… {plural(len(lines) - lines_max, 'more line')}"]


def value_line(value: Json, *, chars_max: int) -> str:
    """Return a value in one line that is safe to show.

    Args:
        value: Any JSON, as a view holds it.
        chars_max: A longer line loses its end.
    """
    text = _scalar(value)
    if text is None:
        text = escaped(canonical.encode(value).decode())
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def _block(value: Json) -> Iterator[str]:
    """Yield the lines of a value."""
    text = _scalar(value)
    if text is not None:
        yield text
    elif isinstance(value, str):
        yield from escaped_lines(value.removesuffix("\n"))
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _member(f"{escaped(name)}:", member)
    elif isinstance(value, list):
        for item in value:
            yield from _item(item)


def _member(name: str, value: Json) -> Iterator[str]:
    """Yield the lines of a named value: on the name's line if it fits one."""
    text = _scalar(value)
    if text is not None:
        yield f"{name} {text}"
        return
    yield name
    for line in _block(value):
        yield f"{_STEP}{line}"


def _item(value: Json) -> Iterator[str]:
    """Yield the lines of a list's item: its first line behind the dash."""
    for index, line in enumerate(_block(value)):
        yield f"{_STEP if index else '- '}{line}"


def _scalar(value: Json) -> str | None:
    """Return a value that takes one line, or None."""
    length = size_of(value)
    if length is not None:
        return f"({size(length)}, not shown here)"
    match value:
        case "":
            return "(empty)"
        case str():
            return None if "\n" in value else escaped(value)
        case []:
            return "(none)"
        case list() | dict() if value:
            return None
        case _:
            return canonical.encode(value).decode()
