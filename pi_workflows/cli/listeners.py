"""What is written while runs are followed: nothing, plain lines, or a document for each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.following import Detail, Followed
from pi_workflows.cli.outcome import Outcome
from pi_workflows.cli.output import Output
from pi_workflows.cli.run_view import TraceItem
from pi_workflows.cli.trace import Columns, change_document, change_lines, described, is_inner

_ENDS: Final = frozenset({"run.completed", "run.failed", "run.timed_out", "run.cancelled"})


class Silence:
    """Writes nothing."""

    @property
    def frame_ms(self) -> int | None:
        """Nothing moves."""
        return None

    @property
    def detail(self) -> Detail:
        """Nothing of a view is shown."""
        return "events"

    def changed(self, run: Followed, item: TraceItem) -> None:
        """Pass over an event."""

    def seen(self, run: Followed) -> None:
        """Pass over a view."""

    def lost(self, run: Followed) -> None:
        """Pass over a lost connection."""

    def moved(self) -> None:
        """Pass over time."""

    def ended(self, run: Followed, outcome: Outcome, *, is_last: bool) -> None:
        """Pass over an end."""


class PlainProgress(Silence):
    """Writes what a run does to standard error: not the server's own business, not the end.

    What the run came to is said when it is known in full.
    """

    def __init__(self, output: Output) -> None:
        self._output = output

    @property
    def detail(self) -> Detail:
        """The end of a failed attempt says why."""
        return "lines"

    def changed(self, run: Followed, item: TraceItem) -> None:
        """Write an event."""
        if not is_inner(item) and item.type not in _ENDS:
            subject = item.node_id or run.run_id
            event = item.type.partition(".")[2].replace("_", " ")
            words = described(item, run.view, run.errors)
            self._output.note(f"{subject}: {event}{f' ({words})' if words else ''}")

    def lost(self, run: Followed) -> None:
        """Say that the server is gone."""
        self._output.note(f"{run.run_id}: the server is gone; reconnecting")


class ChangeLines(Silence):
    """Writes one line for each event to standard output, and a last one for each run.

    Args:
        output: Where to.
        run_ids: The runs that are followed; one alone is not named in each line.
    """

    def __init__(self, output: Output, run_ids: Sequence[str]) -> None:
        self._output = output
        self._run_width = max(map(len, run_ids)) if len(run_ids) > 1 else 0

    @property
    def detail(self) -> Detail:
        """The end of a failed attempt says why."""
        return "lines"

    def changed(self, run: Followed, item: TraceItem) -> None:
        """Write an event."""
        view = run.view
        columns = Columns() if view is None else Columns.of(view, run=self._run_width)
        words = described(item, view, run.errors)
        window = self._output.columns
        self._output.lines(change_lines(run.run_id, item, columns, words, window=window))

    def ended(self, run: Followed, outcome: Outcome, *, is_last: bool) -> None:  # noqa: ARG002
        """Write how following a run ended."""
        self._output.line(end_line(run, outcome))


class ChangeDocuments(Silence):
    """Writes one document for each event to standard output, and a last one for each run.

    Args:
        output: Where to.
        has_display: Whether each event carries where its run stands.
    """

    def __init__(self, output: Output, *, has_display: bool) -> None:
        self._output = output
        self._has_display = has_display

    def changed(self, run: Followed, item: TraceItem) -> None:
        """Write an event."""
        document = change_document(run.run_id, item)
        if self._has_display and run.view is not None:
            document["display"] = display_of(run.view.document)
        self._output.document(document)

    def ended(self, run: Followed, outcome: Outcome, *, is_last: bool) -> None:
        """Write how following a run ended."""
        self._output.document(end_document(run, outcome, is_last=is_last))


def end_line(run: Followed, outcome: Outcome) -> str:
    """Return how following a run ended, as people read it."""
    if outcome.name == "deadline":
        standing = f"still {run.view.display.status}" if run.view is not None else "not there yet"
        return f"{run.run_id}: {standing}; the deadline has passed"
    name = outcome.name.replace("_", " ")
    reason = run.view.display.reason if run.view is not None else None
    return f"{run.run_id}: {name}{f'. {reason}' if reason else ''}"


def end_document(run: Followed, outcome: Outcome, *, is_last: bool) -> dict[str, Json]:
    """Return `pi-workflows.cli-end.v1`."""
    return {
        "schema": "pi-workflows.cli-end.v1",
        "runId": run.run_id,
        "outcome": outcome.name,
        "exitCode": outcome.exit_code,
        "seq": run.seq,
        "final": is_last,
    }


def display_of(view: Json) -> Json:
    """Return what the server told people about a run, as it sent it."""
    return view.get("display") if isinstance(view, dict) else None
