"""`audit diff`: which rows changed between two events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from pi_workflows.audit.changes import Change, Changes, ColumnChange, changes_between
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import WrongUsage
from pi_workflows.base.sql import SqlValue
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import moment, plural
from pi_workflows.cli.output import Line
from pi_workflows.cli.source import refusing, run_in
from pi_workflows.cli.waiting import showing_progress

_NOTHING: Final = "nothing"
_DIGEST_HEX: Final = 12
_DIGEST_BYTES: Final = 32
# How a row came to differ: its sign, its style, the word for programs.
_ADDED: Final = ("+", "green", "added")
_REMOVED: Final = ("-", "red", "removed")
_CHANGED: Final = ("~", "yellow", "changed")
# Earlier than this a number is no time in ms.
_EARLIEST_MS: Final = 1_000_000_000_000


def show_changes(
    invocation: Invocation, file: Path, from_seq: int, to_seq: int, typed: str | None
) -> int:
    """Show which rows changed between two events.

    Args:
        invocation: The invocation.
        file: A database that no server has open.
        from_seq: The earlier event; 0 is before the first.
        to_seq: The later one.
        typed: The run whose rows are shown; None shows all.

    Returns:
        The exit code.

    Raises:
        WrongUsage: The later event comes before the earlier one.
        WorkflowsError: As `run_in` and `changes_between`.
    """
    if to_seq < from_seq:
        raise WrongUsage("--to: the last event comes before the first.", field="--to")
    output = invocation.output
    run_id = None if typed is None else run_in(file, typed)
    with refusing(file), showing_progress(output, "Replaying") as bar:
        found = changes_between(
            file,
            live_directory=state_directory().root,
            from_seq=from_seq,
            to_seq=to_seq,
            run_id=run_id,
            begun=bar.begin,
            progress=lambda count: bar.at("events", count),
        )
    if output.is_json:
        output.document(_document(found))
        return 0
    rows = plural(len(found.changes), "row")
    output.line(f"From event {found.from_seq} to event {found.to_seq}: {rows} changed.")
    for table, changes in groupby(found.changes, key=lambda each: each.table):
        output.styled([(), ((table, "bold"),)])
        for each in changes:
            output.styled(_lines(each))
    if found.is_partial:
        output.note("More rows changed than are listed; take events that lie closer together.")
    return 0


def _document(found: Changes) -> dict[str, Json]:
    """Return `pi-workflows.cli-diff.v1`."""
    return {
        "schema": "pi-workflows.cli-diff.v1",
        "from": found.from_seq,
        "to": found.to_seq,
        "partial": found.is_partial,
        "changes": [
            {
                "table": each.table,
                "change": _kind(each)[2],
                "key": {name: _plain(value) for name, value in each.key.items()},
                "columns": [
                    {
                        "name": column.name,
                        "before": _plain(column.before),
                        "after": _plain(column.after),
                    }
                    for column in each.columns
                ],
                "runIds": list[Json](each.run_ids),
            }
            for each in found.changes
        ],
    }


def _kind(change: Change) -> tuple[str, str, str]:
    """Return how a row came to differ."""
    if change.is_added:
        return _ADDED
    return _REMOVED if change.is_removed else _CHANGED


def _plain(value: SqlValue) -> Json:
    """Return a value as JSON has it; bytes as hex."""
    return value.hex() if isinstance(value, bytes) else value


def _lines(change: Change) -> Iterator[Line]:
    """Yield a row: its key, and a line for each column that differs."""
    sign, style, _ = _kind(change)
    yield ((f"  {sign} ", style), (escaped(_key_words(change.key)), ""))
    shown = [each for each in change.columns if each.before is not None or each.after is not None]
    width = max((len(each.name) for each in shown), default=0)
    for each in shown:
        yield ((f"      {each.name:<{width}}  ", "dim"), (escaped(_column_words(change, each)), ""))


def _key_words(key: Mapping[str, SqlValue]) -> str:
    """Return what identifies a row."""
    return "  ".join(f"{name} {_words(name, value)}" for name, value in key.items())


def _column_words(change: Change, column: ColumnChange) -> str:
    """Return what a column holds, or held and holds."""
    if change.is_added:
        return _words(column.name, column.after)
    if change.is_removed:
        return _words(column.name, column.before)
    return f"{_words(column.name, column.before)} → {_words(column.name, column.after)}"


def _words(name: str, value: SqlValue) -> str:
    """Return a stored value as people read it."""
    if value is None:
        return _NOTHING
    if isinstance(value, bytes):
        kind = "digest" if len(value) == _DIGEST_BYTES else plural(len(value), "byte")
        return f"{kind} {value.hex()[:_DIGEST_HEX]}"
    if isinstance(value, int) and name.endswith("_at") and value > _EARLIEST_MS:
        return moment(value)
    if isinstance(value, int) and name.endswith("_ms"):
        return f"{value:,} ms"
    return str(value)
