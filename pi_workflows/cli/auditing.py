"""`audit`: a file's log replayed and compared, and one run of it as a file of its own."""

from __future__ import annotations

from pathlib import Path

from pi_workflows.audit.capsule import Capsule, write_capsule
from pi_workflows.audit.rebuilding import Difference, Rebuilt, rebuild_file
from pi_workflows.base.canonical import Json
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import plural
from pi_workflows.cli.outcome import FAILED
from pi_workflows.cli.quoting import quoted, quoted_path
from pi_workflows.cli.source import refusing, run_in
from pi_workflows.cli.violations import told, violation_lines
from pi_workflows.cli.waiting import showing_progress
from pi_workflows.cli.workflow_target import absolute_path
from pi_workflows.protocol.state import Verification


def rebuild_state(invocation: Invocation, file: Path, to: Path | None) -> int:
    """Replay a file's log and compare.

    Args:
        invocation: The invocation.
        file: A database that no server has open.
        to: Where the rebuilt database is kept; None keeps none.

    Returns:
        The exit code: 1 when a row differs.

    Raises:
        WorkflowsError: As `rebuild_file`.
    """
    output = invocation.output
    destination = None if to is None else Path(absolute_path(to, field="--to"))
    with refusing(file), showing_progress(output, "Replaying") as bar:
        found = rebuild_file(
            file,
            live_directory=state_directory().root,
            to=destination,
            begun=bar.begin,
            progress=lambda count: bar.at("events", count),
        )
    if output.is_json:
        output.document(_rebuild_document(found, destination))
    else:
        events = plural(found.event_count, "event")
        if found.is_identical:
            output.line(f"Identical: {events} give every row.")
        else:
            output.line(f"{plural(len(found.differences), 'row')} not as {events} give it:")
            output.lines(_difference_line(each) for each in found.differences)
        if destination is not None:
            output.line(f"{destination}: what the log gives.")
    return 0 if found.is_identical else FAILED


def write_run_capsule(invocation: Invocation, file: Path, typed: str, to: Path) -> int:
    """Write the root tree of a run as a database of its own.

    Args:
        invocation: The invocation.
        file: A database that no server has open.
        typed: A run of the tree.
        to: The new file.

    Returns:
        The exit code: 1 when the new file breaks a rule, as the old one then does.

    Raises:
        WorkflowsError: As `run_in` and `write_capsule`.
    """
    output = invocation.output
    destination = Path(absolute_path(to, field="--to"))
    run_id = run_in(file, typed)
    with refusing(file), showing_progress(output, "Writing", ()) as bar:
        made = write_capsule(
            file,
            destination,
            live_directory=state_directory().root,
            run_id=run_id,
            progress=bar.at,
        )
    found = told(made.verification)
    if output.is_json:
        output.document(_capsule_document(made, found, destination))
        return 0 if found.valid else FAILED
    held = f"{plural(made.event_count, 'event')}, {plural(made.blob_count, 'value')}"
    output.line(f"{destination}: {plural(len(made.run_ids), 'run')}, {held}.")
    output.lines(f"  {each}" for each in made.run_ids)
    for table, count in made.left_out.items():
        output.line(f"Left behind: {plural(count, 'row')} of {table}.")
    if not found.valid:
        output.line(f"It is broken as {file} is: {plural(len(found.violations), 'violation')}.")
        output.lines(violation_lines(found.violations))
    name = quoted_path(to)
    output.note("It holds the inputs and outputs of these runs: look before you hand it on.")
    output.note(f"Check it: pi-workflows state verify {name}")
    output.note(f"Read it: pi-workflows audit explain {name} --run {quoted(run_id)}")
    return 0 if found.valid else FAILED


def _capsule_document(made: Capsule, found: Verification, destination: Path) -> dict[str, Json]:
    """Return `pi-workflows.cli-capsule.v1`."""
    return {
        "schema": "pi-workflows.cli-capsule.v1",
        "destination": str(destination),
        "bytes": made.file_bytes,
        "runIds": list[Json](made.run_ids),
        "events": made.event_count,
        "blobs": made.blob_count,
        "leftOut": dict[str, Json](made.left_out),
        "valid": found.valid,
        "violations": list[Json]([each.document() for each in found.violations]),
    }


def _rebuild_document(found: Rebuilt, destination: Path | None) -> dict[str, Json]:
    """Return `pi-workflows.cli-rebuild.v1`."""
    kept: dict[str, Json] = {} if destination is None else {"destination": str(destination)}
    return {
        **kept,
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
