"""What a flush appends to the session journals: rows without an event.

A row gets its presentation revision and its time when it is written. All rows of a run with one
revision are one flush, live and in a rebuild (the decision on replay order).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from pi_workflows.base.blob import Blob


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
