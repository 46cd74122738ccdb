"""`audit at`: a run as it stood after an event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from pi_workflows.audit.reading import FileReader
from pi_workflows.audit.time_travel import Moment, view_at
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import FRAME_DEPTH_MAX
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.quoting import quoted, quoted_path
from pi_workflows.cli.run_view import RunView
from pi_workflows.cli.showing import show_view
from pi_workflows.cli.source import Source, refusing, run_in
from pi_workflows.cli.waiting import showing_progress


def show_moment(invocation: Invocation, file: Path, event_seq: int, typed: str | None) -> int:
    """Show a run as it stood after an event's command.

    Args:
        invocation: The invocation.
        file: A database that no server has open.
        event_seq: The event.
        typed: The run; None is the one that the event belongs to.

    Returns:
        The exit code.

    Raises:
        WorkflowsError: As `run_in` and `view_at`.
    """
    output = invocation.output
    run_id = None if typed is None else run_in(file, typed)
    with refusing(file), ExitStack() as stack:
        with showing_progress(output, "Replaying") as bar:
            then = stack.enter_context(
                view_at(
                    file,
                    live_directory=state_directory().root,
                    event_seq=event_seq,
                    run_id=run_id,
                    begun=bar.begin,
                    progress=lambda count: bar.at("events", count),
                )
            )
        if output.is_json:
            output.document(_document(then))
            return 0
        view = RunView.parse(canonical.decode(then.content, depth_max=FRAME_DEPTH_MAX))
        asked = Source(FileReader(then.read), then.at_ms, file, _place(file, then))
        show_view(output, asked, view, _next(file, then))
    return 0


def _document(then: Moment) -> dict[str, Json]:
    """Return `pi-workflows.cli-at.v1`."""
    return {
        "schema": "pi-workflows.cli-at.v1",
        "event": then.event_seq,
        "requestedEvent": then.asked_seq,
        "at": then.at_ms,
        "runId": then.run_id,
        "view": canonical.fragment(then.content),
    }


def _place(file: Path, then: Moment) -> str:
    """Say which moment of the file is shown, and why it is not the one that was asked for."""
    place = f"after event {then.event_seq} of {file}"
    if then.event_seq > then.asked_seq:
        return f"{place}, with which the command of event {then.asked_seq} ends"
    if then.event_seq < then.asked_seq:
        return f"{place}, the last of this run up to event {then.asked_seq}"
    return place


def _next(file: Path, then: Moment) -> Iterator[str]:
    """Yield what may be asked next, each a command without the program's name."""
    name = quoted_path(file)
    yield f"audit log {name} --run {quoted(then.run_id)} --from {then.event_seq + 1}"
    yield f"show {quoted(then.run_id)} --file {name}"
