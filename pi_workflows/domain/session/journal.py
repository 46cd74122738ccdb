"""What a flush appends to the session journals: rows without an event.

A row gets its presentation revision and its time when it is written. All rows of a run with one
revision are one flush, live and in a rebuild (the decision on replay order).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import SqlValue


class EntryRow(NamedTuple):
    """A row of `session_entries`, without its run, its revision and its time."""

    segment_id: str
    entry_seq: int
    run_seq: int
    entry_id: str
    entry_hash: bytes


class EventRow(NamedTuple):
    """A row of `session_events`, without its run, its revision and its time."""

    segment_id: str
    event_seq: int
    run_seq: int
    event_type: str
    node_id: str | None
    attempt_id: str | None
    turn_id: str | None
    message_id: str | None
    tool_call_id: str | None
    payload_hash: bytes


JournalRow: TypeAlias = EntryRow | EventRow
JournalRowT = TypeVar("JournalRowT", bound=JournalRow)


class Kept(NamedTuple, Generic[JournalRowT]):
    """A row as its journal keeps it.

    Attributes:
        row: What was captured.
        run_id: Its run.
        revision: The presentation revision of its flush.
        at_ms: When its flush was recorded.
    """

    row: JournalRowT
    run_id: str
    revision: int
    at_ms: int

    @property
    def columns(self) -> Mapping[str, SqlValue]:
        """Every column of the row, by its name in the schema."""
        return {
            **self.row._asdict(),
            "run_id": self.run_id,
            "presentation_revision": self.revision,
            "recorded_at": self.at_ms,
        }


def kept_entry(*columns: Any) -> Kept[EntryRow]:
    """Shape a row of `session_entries`: its own columns, then run, revision and time."""
    *own, run_id, revision, at_ms = columns
    return Kept(EntryRow._make(own), run_id, revision, at_ms)


def kept_event(*columns: Any) -> Kept[EventRow]:
    """Shape a row of `session_events`, as `kept_entry`."""
    *own, run_id, revision, at_ms = columns
    return Kept(EventRow._make(own), run_id, revision, at_ms)


@dataclass(frozen=True, slots=True)
class Flush:
    """Rows that one command appends for one run.

    Attributes:
        run_id: The run.
        entries: Settled entries, by their number in the run.
        events: Session events, by their number in the run.
    """

    run_id: str
    entries: tuple[EntryRow, ...] = ()
    events: tuple[EventRow, ...] = ()

    @classmethod
    def joined(cls, flushes: Iterable[Flush]) -> Flush | None:
        """Return several flushes of one run and revision as the one that they are; None of none."""
        parts = tuple(flushes)
        if len(parts) <= 1:
            return parts[0] if parts else None
        return cls(
            parts[0].run_id,
            tuple(row for part in parts for row in part.entries),
            tuple(row for part in parts for row in part.events),
        )

    def rows(self) -> Iterator[JournalRow]:
        """Yield every row, entries first."""
        yield from self.entries
        yield from self.events


@dataclass(frozen=True, slots=True)
class Progress:
    """What a segment holds after a flush.

    Attributes:
        segment_id: The segment.
        entry_count: Entries.
        event_count: Session events.
        entry_digest: Running digest over its rows of `session_entries`, 32 bytes.
        event_digest: Running digest over its rows of `session_events`, 32 bytes.
    """

    segment_id: str
    entry_count: int
    event_count: int
    entry_digest: bytes
    event_digest: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The replay state of a run's session at a boundary.

    Attributes:
        event_seq: The run-wide number of the last event in it.
        state: Its stored form.
    """

    event_seq: int
    state: Blob
