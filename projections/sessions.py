"""`session_segments`: captures, and how much each holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.session.events import SegmentEnded, SegmentOpened
from pi_workflows.domain.session.journal import Progress

SQL: Final = load(__package__, "sessions.sql")


def opened(event: Stored, fact: SegmentOpened, db: Projection) -> None:
    """Insert a new capture, which holds nothing."""
    db.write(SQL["insert_segment"], **fact.segment.columns())


def ended(event: Stored, fact: SegmentEnded, db: Projection) -> None:
    """End a capture, which holds as much as its end says."""
    db.write(SQL["end_segment"], **fact.segment.columns())


def flushed(progress: Iterable[Progress], db: Projection) -> None:
    """Move what captures hold after rows were appended to the journals."""
    for segment in progress:
        db.write(
            SQL["move_segment"],
            segment_id=segment.segment_id,
            entry_count=segment.entry_count,
            event_count=segment.event_count,
            entry_digest=segment.entry_digest,
            event_digest=segment.event_digest,
        )
