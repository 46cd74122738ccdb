"""`audit log`: the events of a file as lines, for people in words, for programs as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from pi_workflows.audit.log import FileLog, LoggedEvent, matching_types, reading_log
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import WrongUsage
from pi_workflows.base.limits import LOG_EVENTS_DEFAULT, REVISION_MAX
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.event_words import event_words
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import MOMENT_CHARS, day_and_time, moment, plural
from pi_workflows.cli.outcome import FAILED
from pi_workflows.cli.output import Output
from pi_workflows.cli.quoting import quoted_path, quoted_words
from pi_workflows.cli.source import Source, refusing
from pi_workflows.cli.table import ELLIPSIS

_NOTHING: Final = "-"
_GAP: Final = "  "
# The beginning of a drawn ID that people know again.
_RUN_CHARS_MIN: Final = 16
_RUN_CHARS_MAX: Final = 24
_NODE_CHARS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are asked for.

    Attributes:
        run: Of this run and its effects; a whole ID or a unique prefix.
        types: Of these types or families.
        from_seq: From this number on.
        to_seq: Up to this number; None goes to the end.
        limit: As many; None takes all, for a document 1,000.
    """

    run: str | None = None
    types: tuple[str, ...] = ()
    from_seq: int = 0
    to_seq: int | None = None
    limit: int | None = None

    def after(self, file: Path, next_seq: int) -> str:
        """Return the command that goes on from an event."""
        words = ["--from", str(next_seq)]
        if self.to_seq is not None:
            words += ["--to", str(self.to_seq)]
        if self.run is not None:
            words += ["--run", self.run]
        for each in self.types:
            words += ["--type", each]
        if self.limit is not None:
            words += ["--limit", str(self.limit)]
        return f"pi-workflows audit log {quoted_path(file)} {quoted_words(words)}"


def list_log(invocation: Invocation, file: Path, wanted: Wanted) -> int:
    """List the events of a file.

    Args:
        invocation: The invocation.
        file: A database that no server has open.
        wanted: Which events.

    Returns:
        The exit code: 1 when an event cannot be read.

    Raises:
        WrongUsage: There is no such type of event, or the last one comes before the first.
        NotFound: There is no such run.
        Refused: `runAmbiguous`.
        WorkflowsError: As `reading_log`.
    """
    output = invocation.output
    types = tuple(chain.from_iterable(map(matching_types, wanted.types))) or None
    if wanted.to_seq is not None and wanted.to_seq < wanted.from_seq:
        raise WrongUsage("--to: the last event comes before the first.", field="--to")
    limit = wanted.limit or (LOG_EVENTS_DEFAULT if output.is_json else None)
    with refusing(file), reading_log(file, live_directory=state_directory().root) as log:
        asked = Source.of_file(log.reader, log.reader.at_ms, file)
        slices = log.slices(
            run_id=None if wanted.run is None else asked.run_id_of(wanted.run),
            types=types,
            from_seq=wanted.from_seq,
            to_seq=REVISION_MAX if wanted.to_seq is None else wanted.to_seq,
        )
        events = _Taken(slices, limit)
        if output.is_json:
            output.document(_listed(events))
        else:
            lines = _Lines(output, log)
            for part in events:
                lines.write(part)
    if events.next_seq is not None:
        output.note(f"More: {wanted.after(file, events.next_seq)}")
    if events.unreadable_count:
        output.note(
            f"{plural(events.unreadable_count, 'event')} cannot be read."
            f" See what is broken: pi-workflows state verify {quoted_path(file)}"
        )
    return FAILED if events.unreadable_count else 0


@dataclass(slots=True)
class _Taken:
    """Events up to a limit, and what is known of them when they have gone by.

    Attributes:
        slices: Where they come from.
        limit: As many; None takes all.
        next_seq: The first that was left, if one was.
        unreadable_count: How many are no events of their type.
    """

    slices: Iterator[list[LoggedEvent]]
    limit: int | None
    next_seq: int | None = field(default=None, init=False)
    unreadable_count: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[list[LoggedEvent]]:
        """Yield them some hundred at a time."""
        left = self.limit
        for events in self.slices:
            if left is not None and len(events) > left:
                self.next_seq = events[left].event_seq
                events = events[:left]  # noqa: PLW2901 - the rest is left
            self.unreadable_count += sum(each.payload is None for each in events)
            yield events
            if self.next_seq is not None:
                return
            left = None if left is None else left - len(events)


def _listed(events: _Taken) -> dict[str, Json]:
    """Return `pi-workflows.cli-log.v1`."""
    document: dict[str, Json] = {
        "schema": "pi-workflows.cli-log.v1",
        "events": [_document(each) for part in events for each in part],
    }
    if events.next_seq is not None:
        document["next"] = events.next_seq
    return document


def _document(event: LoggedEvent) -> dict[str, Json]:
    """Return an event as programs read it; what it has not is left out."""
    document: dict[str, Json] = {
        "event": event.event_seq,
        "at": event.at_ms,
        "actor": event.actor_type,
        "type": event.event_type,
        "revision": event.revision,
        "readable": event.payload is not None,
    }
    optional: dict[str, Json] = {
        "resourceType": event.resource_type,
        "resourceKey": event.resource_key,
        "runId": event.run_id,
        "nodeId": event.node_id,
        "attemptId": event.attempt_id,
        "command": event.command,
        "payload": event.payload,
    }
    return document | {name: value for name, value in optional.items() if value is not None}


class _Lines:
    """Writes events as lines whose columns grow with what stands in them.

    A pipe gets one line an event with everything in it. In a window the day stands above the events
    of a day, and words that do not fit stand below their event.
    """

    def __init__(self, output: Output, log: FileLog) -> None:
        self._output = output
        self._log = log
        self._columns = output.columns
        self._day = ""
        self._widths = {"seq": 4, "actor": 4, "run": 4, "type": 12, "node": 1}

    def write(self, events: list[LoggedEvent]) -> None:
        """Write some events."""
        rows = [self._cells(event) for event in events]
        for name, width in self._widths.items():
            self._widths[name] = max(width, *(len(row[name]) for row in rows), 0)
        for row in rows:
            self._write_row(row)

    def _write_row(self, row: dict[str, str]) -> None:
        """Write one event."""
        day, time = row["day"], row["time"]
        place = {
            name: f"{row[name]:<{width}}" for name, width in self._widths.items() if name != "seq"
        }
        at = f"{row['at']:<{MOMENT_CHARS}}"
        place = {"seq": f"{row['seq']:>{self._widths['seq']}}", "at": at, **place}
        if self._columns is None:
            self._output.line(_joined([*place.values(), row["words"]]))
            return
        if day != self._day:
            self._day = day
            self._output.line(day)
        node = place.pop("node").strip()
        words = row["words"] if node == _NOTHING else f"{node}: {row['words']}"
        head = _joined([*(place | {"at": time}).values()])
        whole = _joined([*(place | {"at": time}).values(), words])
        if len(whole) <= self._columns:
            self._output.line(whole)
        else:
            self._output.lines((head, f"{' ' * (self._widths['seq'] + len(_GAP))}{words}"))

    def _cells(self, event: LoggedEvent) -> dict[str, str]:
        """Return what stands in the columns of an event's line, each a safe text."""
        day, time = day_and_time(event.at_ms)
        return {
            "seq": str(event.event_seq),
            "at": moment(event.at_ms),
            "day": day,
            "time": time,
            "actor": event.actor_type,
            "run": escaped(self._run(event)),
            "type": escaped(event.event_type),
            "node": escaped(_cut(event.node_id or _NOTHING, _NODE_CHARS_MAX)),
            "words": escaped(event_words(event)),
        }

    def _run(self, event: LoggedEvent) -> str:
        """Return an event's run; a long ID as its beginning where a person reads it."""
        run_id = event.run_id
        if run_id is None:
            return event.resource_type or _NOTHING
        if self._columns is None or len(run_id) <= _RUN_CHARS_MAX:
            return run_id
        return _cut(run_id, max(_RUN_CHARS_MIN, self._log.chars_needed(run_id)) + 1)


def _joined(cells: Sequence[str]) -> str:
    """Return cells as one line."""
    return _GAP.join(cells).rstrip()


def _cut(text: str, chars_max: int) -> str:
    """Return a text that fits a column."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}{ELLIPSIS}"
