"""A flush: rows for the session journals, and what follows from them, live and in a rebuild."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pi_workflows.base.sql import load
from pi_workflows.domain.fact import ViewRef
from pi_workflows.domain.session.checkpoints import crossed
from pi_workflows.domain.session.journal import (
    Checkpoint,
    EntryRow,
    Flush,
    JournalRow,
    Kept,
    Progress,
)
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.store.capture import append_entry, append_event, entry_digest
from pi_workflows.store.transaction import Transaction

SQL: Final = load(__package__, "flush.sql")


@dataclass(frozen=True, slots=True)
class Stamped:
    """A flush as it is stored.

    Attributes:
        flush: The rows.
        view: The run and the presentation revision that all of them carry.
        at_ms: When all of them were recorded.
    """

    flush: Flush
    view: ViewRef
    at_ms: int


def append_flush(tx: Transaction, stamped: Stamped, projectors: Projectors) -> None:
    """Append a flush and move what depends on it; its content is stored already.

    Args:
        tx: The open transaction.
        stamped: The flush.
        projectors: Where it becomes rows.

    Raises:
        AssertionError: It does not go on where its captures end.
    """
    flush = stamped.flush
    progress: dict[str, Progress] = {}
    for row in flush.rows():
        known = progress.get(row.segment_id) or _progress(tx, row.segment_id)
        progress[row.segment_id] = _appended(tx, known, row, stamped)
    checkpoints: tuple[Checkpoint, ...] = ()
    if flush.events:
        before, after = flush.events[0].run_seq - 1, flush.events[-1].run_seq
        checkpoints = crossed(tx.read, flush.run_id, before, after)
    projectors.apply_flush(
        flush, tuple(progress.values()), checkpoints, stamped.at_ms, tx.projection
    )


def _progress(tx: Transaction, segment_id: str) -> Progress:
    """Return what a capture holds."""
    found = tx.read.one(Progress, SQL["progress"], segment_id=segment_id)
    assert found is not None, f"{segment_id}: rows without their capture"
    return found


def _appended(tx: Transaction, before: Progress, row: JournalRow, stamped: Stamped) -> Progress:
    """Append a row, and return what its capture holds then."""
    columns = Kept(row, stamped.view.run_id, stamped.view.revision, stamped.at_ms).columns
    if isinstance(row, EntryRow):
        append_entry(tx, columns)
        assert row.entry_seq == before.entry_count + 1, f"{row.segment_id}: a gap in its entries"
        return replace(
            before,
            entry_count=row.entry_seq,
            entry_digest=entry_digest(before.entry_digest, columns),
        )
    append_event(tx, columns)
    assert row.event_seq == before.event_count + 1, f"{row.segment_id}: a gap in its events"
    return replace(
        before,
        event_count=row.event_seq,
        event_digest=entry_digest(before.event_digest, columns),
    )
