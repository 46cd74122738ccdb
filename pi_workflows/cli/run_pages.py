"""`show --page`: a window of what grows with a run and the way to the next, or all it gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.vocabulary import PageKind, WindowKind
from pi_workflows.cli.connection import ask
from pi_workflows.cli.content import whole
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import duration, moment, plural
from pi_workflows.cli.message_pages import write_follow_ups, write_messages, write_settings
from pi_workflows.cli.outline import value_line, value_lines
from pi_workflows.cli.output import Output
from pi_workflows.cli.picture import Scene, failure_line, status_span
from pi_workflows.cli.progress import progress_line
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_view import (
    FollowUp,
    GraphStep,
    SessionEntry,
    SessionEvent,
    SessionMessage,
    SettingsScope,
    TraceItem,
    Update,
)
from pi_workflows.cli.session_pages import write_entries, write_session_events
from pi_workflows.cli.source import Source, source
from pi_workflows.cli.table import Cell, write_table
from pi_workflows.cli.trace import Columns, change_lines, described
from pi_workflows.cli.trace_pages import errors_of
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import RunPage, ViewPage
from pi_workflows.protocol.wire import AnyJson

T = TypeVar("T", bound=BaseModel)

_VALUE_CHARS_MAX: Final = 400
# Of the document of all that a run gave, what a person reads.
_GIVEN: Final = ("finalOutput", "outputs", "results")
_STEP_HEADINGS: Final = ("step", "outcome", "node", "type", "visit", "attempt", "took", "result")
_UPDATE_HEADINGS: Final = ("seq", "at", "node", "type", "key", "progress")


class _Step(GraphStep):
    """A settled attempt with what it gave."""

    node_type: str
    output: AnyJson = None
    error: AnyJson = None


class _Kind(NamedTuple):
    """How a kind of page is shown.

    Attributes:
        noun: What one item of it is called.
        nouns: What several are called.
        first: The number of the first item of all.
        around: The kind of page in which one goes on from here.
        write: Writes the items.
    """

    noun: str
    nouns: str
    first: int
    around: WindowKind
    write: Callable[[Output, Reader, RunPage], None]


def show_page(
    invocation: Invocation, typed: str, kind: PageKind, cursor: int | None, file: Path | None
) -> int:
    """Show a window of a run.

    Args:
        invocation: The invocation.
        typed: The run.
        kind: What of it.
        cursor: Where: the number of an item; of a step for `trace_at_step`. None is the end.
        file: A database that no server has open; None asks the server.

    Returns:
        The exit code.

    Raises:
        NotFound: There is no such run.
        Refused: `runAmbiguous`.
        ProtocolViolation: The page cannot be read.
        WorkflowsError: As `source`.
    """
    output = invocation.output
    with source(invocation, file) as asked:
        run_id = asked.run_id_of(typed)
        payload = ViewPage(kind=kind, cursor=cursor)
        receipt = ask(asked.reader, Operation.VIEW_PAGE, payload, run_id=run_id).receipt
        page = RunPage.parse(receipt)
        if kind == "aggregate":
            _write_aggregate(output, asked.reader, page)
            return 0
        if output.is_json:
            output.document(receipt if isinstance(receipt, dict) else {})
            return 0
        shown = _KINDS[kind]
        if page.items:
            shown.write(output, asked.reader, page)
        _conclude(output, asked, page, shown)
    return 0


def _write_aggregate(output: Output, reader: Reader, page: RunPage) -> None:
    """Write everything that a run gave: the document for programs, else its values."""
    document = whole(reader, page.run_id, page.items[0]) if page.items else None
    if not isinstance(document, dict):
        raise _unreadable()
    if output.is_json:
        output.document(document)
        return
    given: dict[str, Json] = {name: document[name] for name in _GIVEN if name in document}
    if given.get("results"):
        output.lines(value_lines(given))
    else:
        output.note("Nothing was given yet.")


def _conclude(output: Output, asked: Source, page: RunPage, kind: _Kind) -> None:
    """Say which part of all was shown, and how the parts beside it are."""
    end = page.start + len(page.items)
    if not page.items:
        output.note(f"No {kind.nouns}.")
        return
    first, last = page.start + kind.first, end - 1 + kind.first
    shown = f"{kind.noun} {first:,}" if first == last else f"{kind.nouns} {first:,} to {last:,}"
    output.note(f"{shown.capitalize()}; the run has {plural(page.total, kind.noun, kind.nouns)}.")
    command = f"pi-workflows show {page.run_id} --page {kind.around} --cursor"
    if page.start > 0:
        output.note(f"Before: {command} {page.start - 1}{asked.option}")
    if end < page.total:
        output.note(f"After: {command} {end}{asked.option}")


def _write_steps(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write steps as a table."""
    scene = Scene(now_ms=0)
    rows: list[list[Cell]] = []
    for index, step in enumerate(_items(_Step, page), page.start):
        took = None
        if step.started_at is not None and step.finished_at is not None:
            took = step.finished_at - step.started_at
        rows.append(
            [
                str(index),
                status_span(step.outcome, scene),
                step.node_id,
                step.node_type,
                str(step.visit),
                str(step.attempt_number),
                "" if took is None else duration(took),
                _result(step),
            ]
        )
    numbers = frozenset({"step", "visit", "attempt", "took"})
    write_table(output, _STEP_HEADINGS, rows, numbers=numbers)


def _result(step: _Step) -> str:
    """Return what a step gave, or why it did not, in a line."""
    if step.error is not None:
        return failure_line(step.error)
    return value_line(step.output, chars_max=_VALUE_CHARS_MAX)


def _write_trace(output: Output, reader: Reader, page: RunPage) -> None:
    """Write events as lines; the end of the step that was asked for stands out."""
    items = _items(TraceItem, page)
    errors = errors_of(reader, page.run_id, items)
    columns = Columns(node=max(len(item.node_id or "") for item in items))
    step = page.cursor if page.kind == "trace_at_step" else None
    output.styled(
        ((line, "bold" if _settles(item, step) else ""),)
        for item in items
        for line in change_lines(
            page.run_id, item, columns, described(item, None, errors), window=output.columns
        )
    )


def _settles(item: TraceItem, step: int | None) -> bool:
    """Whether an event is the end of a step."""
    return step is not None and item.payload.get("stepIndex") == step


def _write_updates(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write progress as a table."""
    rows: list[list[Cell]] = [
        [
            str(update.seq),
            moment(update.at),
            update.node_id,
            update.type,
            update.key,
            progress_line(update.type, update.key, update.data, has_unicode=output.is_terminal),
        ]
        for update in _items(Update, page)
    ]
    write_table(output, _UPDATE_HEADINGS, rows, numbers=frozenset({"seq"}))


def _write_entries(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write what was captured of what sessions said."""
    write_entries(output, _items(SessionEntry, page))


def _write_session_events(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write what was captured of what sessions did."""
    write_session_events(output, _items(SessionEvent, page))


def _write_messages(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write what the run told its session."""
    write_messages(output, _items(SessionMessage, page))


def _write_follow_ups(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write what is to follow the run."""
    write_follow_ups(output, _items(FollowUp, page))


def _write_settings(output: Output, _reader: Reader, page: RunPage) -> None:
    """Write what people may change about the run."""
    write_settings(output, _items(SettingsScope, page))


def _items(shape: type[T], page: RunPage) -> list[T]:
    """Read the items of a page."""
    try:
        return [shape.model_validate(item) for item in page.items]
    except ValidationError:
        raise _unreadable() from None


def _unreadable() -> ProtocolViolation:
    """Return the error of a page that is none."""
    return ProtocolViolation("The server sent a page that cannot be read.")


_TRACE: Final = _Kind("event", "events", 1, "trace", _write_trace)
_KINDS: Final[Mapping[WindowKind, _Kind]] = {
    "steps": _Kind("step", "steps", 0, "steps", _write_steps),
    "trace": _TRACE,
    "trace_at_step": _TRACE,
    "updates": _Kind("update", "updates", 1, "updates", _write_updates),
    "settings": _Kind("scope", "scopes", 1, "settings", _write_settings),
    "follow_ups": _Kind("follow-up", "follow-ups", 1, "follow_ups", _write_follow_ups),
    "workflow_messages": _Kind("message", "messages", 1, "workflow_messages", _write_messages),
    "session_entries": _Kind("entry", "entries", 1, "session_entries", _write_entries),
    "session_events": _Kind(
        "session event", "session events", 1, "session_events", _write_session_events
    ),
}
