"""`audit`: a file's log replayed and compared."""

from __future__ import annotations

from pathlib import Path

from pi_workflows.audit.rebuilding import Difference, Rebuilt, rebuild_file
from pi_workflows.base.canonical import Json
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import plural
from pi_workflows.cli.outcome import FAILED
from pi_workflows.cli.source import refusing
from pi_workflows.cli.waiting import showing_progress


def rebuild_state(invocation: Invocation, file: Path) -> int:
    """Replay a file's log and compare.

    Args:
        invocation: The invocation.
        file: A database that no server has open.

    Returns:
        The exit code: 1 when a row differs.

    Raises:
        WorkflowsError: As `rebuild_file`.
    """
    output = invocation.output
    with refusing(file), showing_progress(output, "Replaying") as bar:
        found = rebuild_file(
            file,
            live_directory=state_directory().root,
            begun=bar.begin,
            progress=lambda count: bar.at("events", count),
        )
    if output.is_json:
        output.document(_rebuild_document(found))
    else:
        events = plural(found.event_count, "event")
        if found.is_identical:
            output.line(f"Identical: {events} give every row.")
        else:
            output.line(f"{plural(len(found.differences), 'row')} not as {events} give it:")
            output.lines(_difference_line(each) for each in found.differences)
    return 0 if found.is_identical else FAILED


def _rebuild_document(found: Rebuilt) -> dict[str, Json]:
    """Return `pi-workflows.cli-rebuild.v1`."""
    return {
        "schema": "pi-workflows.cli-rebuild.v1",
        "identical": found.is_identical,
        "events": found.event_count,
        "differences": [
            {"table": each.table, "key": _key(each), "columns": list[Json](each.columns)}
            for each in found.differences
        ],
    }


def _key(difference: Difference) -> dict[str, Json]:
    """Return what identifies a row; bytes as hex."""
    return {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in difference.key.items()
    }


def _difference_line(difference: Difference) -> str:
    """Return a row that differs, in one line."""
    key = ", ".join(f"{name}={value}" for name, value in _key(difference).items())
    if difference.left is None:
        return f"  {difference.table} {key}: missing in the file"
    if difference.right is None:
        return f"  {difference.table} {key}: not given by the log"
    return f"  {difference.table} {key}: {', '.join(difference.columns)}"
