"""Pages of captured sessions: entries by what they say, events by what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.measures import moment
from pi_workflows.cli.outline import value_line
from pi_workflows.cli.output import Output
from pi_workflows.cli.run_view import SessionEntry, SessionEvent
from pi_workflows.cli.table import Cell, write_table

_TEXT_CHARS_MAX: Final = 400
_ENTRY_HEADINGS: Final = ("entry", "at", "kind", "text")
_EVENT_HEADINGS: Final = ("event", "at", "node", "type", "about")
# What every entry has and nobody reads.
_FRAME: Final = frozenset({"type", "id", "parentId", "timestamp"})


def write_entries(output: Output, entries: Iterable[SessionEntry]) -> None:
    """Write entries as a table: a message with its role and its text, another one with its type."""
    rows: list[list[Cell]] = [
        [str(each.seq), moment(each.at), *_said(each.entry)] for each in entries
    ]
    write_table(output, _ENTRY_HEADINGS, rows, numbers=frozenset({"entry"}))


def write_session_events(output: Output, events: Iterable[SessionEvent]) -> None:
    """Write session events as a table; what was said stands in the entries."""
    rows: list[list[Cell]] = [
        [str(each.seq), moment(each.at), each.node_id or "", each.type, " ".join(_about(each))]
        for each in events
    ]
    write_table(output, _EVENT_HEADINGS, rows, numbers=frozenset({"event"}))


def _said(entry: Json) -> tuple[str, str]:
    """Return what an entry is, and what it says."""
    if not isinstance(entry, dict) or "type" not in entry:
        return "", value_line(entry, chars_max=_TEXT_CHARS_MAX)
    message = entry.get("message")
    if isinstance(message, dict):
        return str(message.get("role", "")), _shortened(" ".join(_texts(message.get("content"))))
    members: dict[str, Json] = {
        name: member for name, member in entry.items() if name not in _FRAME
    }
    return str(entry["type"]), value_line(members, chars_max=_TEXT_CHARS_MAX)


def _texts(content: Json) -> Iterator[str]:
    """Yield what the parts of a message say; of another part than a text, its name."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            text = part.get("text") if part.get("type") == "text" else part.get("name")
            yield text if isinstance(text, str) else f"({part.get('type')})"


def _shortened(text: str) -> str:
    """Return a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_CHARS_MAX else f"{line[: _TEXT_CHARS_MAX - 1]}…"


def _about(event: SessionEvent) -> Iterator[str]:
    """Yield what an event is about: its message or its tool call, and what its payload says."""
    named = event.tool_call_id or event.message_id
    if named is not None:
        yield named
    if isinstance(event.payload, dict):
        for name, member in event.payload.items():
            yield f"{name}={value_line(member, chars_max=_TEXT_CHARS_MAX)}"
