"""Pages of what passes between a run and its session, and of what people may change about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.measures import moment
from pi_workflows.cli.outline import value_line
from pi_workflows.cli.output import Output
from pi_workflows.cli.run_view import FollowUp, SessionMessage, SettingsScope
from pi_workflows.cli.table import Cell, write_table

_TEXT_CHARS_MAX: Final = 400
_MESSAGE_HEADINGS: Final = ("order", "at", "kind", "status", "turn", "text")
_FOLLOW_UP_HEADINGS: Final = ("order", "at", "state", "by", "prompt")
_SETTINGS_HEADINGS: Final = ("scope", "change", "value")


def write_messages(output: Output, messages: Iterable[SessionMessage]) -> None:
    """Write messages as a table: what became of each, and of the newest turn for it."""
    rows: list[list[Cell]] = [
        [
            str(each.order),
            moment(each.created_at),
            each.kind,
            each.status,
            "" if each.turn is None else each.turn.stop_reason or "open",
            _line(each.content),
        ]
        for each in messages
    ]
    write_table(output, _MESSAGE_HEADINGS, rows, numbers=frozenset({"order"}))


def write_follow_ups(output: Output, follow_ups: Iterable[FollowUp]) -> None:
    """Write follow-ups as a table."""
    rows: list[list[Cell]] = [
        [str(each.order), moment(each.created_at), each.state, each.actor, _line(each.prompt)]
        for each in follow_ups
    ]
    write_table(output, _FOLLOW_UP_HEADINGS, rows, numbers=frozenset({"order"}))


def write_settings(output: Output, scopes: Iterable[SettingsScope]) -> None:
    """Write settings as a table."""
    rows: list[list[Cell]] = [
        [each.scope_id, str(each.change_number), _line(each.value)] for each in scopes
    ]
    write_table(output, _SETTINGS_HEADINGS, rows, numbers=frozenset({"change"}))


def _line(value: Json) -> str:
    """Return a text, or another value, in one line."""
    if not isinstance(value, str):
        return value_line(value, chars_max=_TEXT_CHARS_MAX)
    line = " ".join(value.split())
    return line if len(line) <= _TEXT_CHARS_MAX else f"{line[: _TEXT_CHARS_MAX - 1]}…"
