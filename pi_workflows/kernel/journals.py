"""The session journals of a database, read flush by flush as a rebuild needs them.

A flush is the rows of one run with one presentation revision (the decision on replay order).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from pi_workflows.base import ids
from pi_workflows.base.limits import EVENTS_SLICE_MAX
from pi_workflows.base.sql import Read, Statement, load
from pi_workflows.domain.fact import ViewRef
from pi_workflows.domain.session.journal import (
    Flush,
    JournalRowT,
    Kept,
    kept_entry,
    kept_event,
)
from pi_workflows.kernel.flush import Stamped

SQL: Final = load(__package__, "journals.sql")


@dataclass(slots=True)
class _Place:
    """How far the journals of a run were read.

    Attributes:
        entry_seq: The run-wide number of the last entry.
        event_seq: That of the last event.
        revision: That of the next flush.
    """

    entry_seq: int
    event_seq: int
    revision: int


class Journals:
    """The flushes that a rebuild has not taken yet. Of a run without any it knows nothing."""

    def __init__(self, source: Read, *, of: Container[str] | None = None) -> None:
        """Begin before the first flush of each run.

        Args:
            source: One consistent read that lasts as long as this does.
            of: The resources of the runs that are wanted; None wants all.
        """
        self._source = source
        self._places: dict[str, _Place] = {}
        for run_id in source.all(str, SQL["runs"]):
            if of is None or ids.resource_id("run", run_id) in of:
                self._move(run_id, 0, 0)

    def before(self, run_id: str, revision: int) -> Iterator[Stamped]:
        """Yield a run's next flushes below a presentation revision, in their order."""
        while (place := self._places.get(run_id)) is not None and place.revision < revision:
            yield self._take(run_id, place)

    def rest(self) -> Iterator[Stamped]:
        """Yield every flush that is left, by run and revision."""
        for run_id in sorted(self._places):
            while (place := self._places.get(run_id)) is not None:
                yield self._take(run_id, place)

    def _take(self, run_id: str, place: _Place) -> Stamped:
        """Return the next flush of a run, and go on behind it."""
        entries = self._flushed(kept_entry, SQL["entries"], run_id, place.entry_seq, place.revision)
        events = self._flushed(kept_event, SQL["events"], run_id, place.event_seq, place.revision)
        self._move(
            run_id,
            entries[-1].row.run_seq if entries else place.entry_seq,
            events[-1].row.run_seq if events else place.event_seq,
        )
        flush = Flush(
            run_id, tuple(kept.row for kept in entries), tuple(kept.row for kept in events)
        )
        at_ms = entries[0].at_ms if entries else events[0].at_ms
        return Stamped(flush, ViewRef(run_id=run_id, revision=place.revision), at_ms)

    def _flushed(
        self,
        shape: Callable[..., Kept[JournalRowT]],
        statement: Statement,
        run_id: str,
        after: int,
        revision: int,
    ) -> list[Kept[JournalRowT]]:
        """Return the next rows of a journal, as far as they have one presentation revision."""
        found: list[Kept[JournalRowT]] = []
        while True:
            rows = self._source.all(
                shape, statement, run_id=run_id, after=after, rows=EVENTS_SLICE_MAX
            )
            found += takewhile(lambda kept: kept.revision == revision, rows)
            if len(rows) < EVENTS_SLICE_MAX or found[-1:] != rows[-1:]:
                return found
            after = rows[-1].row.run_seq

    def _move(self, run_id: str, entry_seq: int, event_seq: int) -> None:
        """Stand behind rows of a run; a run that has no more is forgotten."""
        revision = self._source.one(
            _Revision,
            SQL["next_revision"],
            run_id=run_id,
            entry_seq=entry_seq,
            event_seq=event_seq,
        )
        if revision is None or revision.value is None:
            self._places.pop(run_id, None)
        else:
            self._places[run_id] = _Place(entry_seq, event_seq, revision.value)


class _Revision(NamedTuple):
    value: int | None
