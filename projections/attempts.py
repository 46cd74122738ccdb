"""`node_attempts`, `attempt_active_intervals`, `attempt_entries`, `run_steps`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.attempt.events import (
    AttemptSettled,
    AttemptStarted,
    EntriesLinked,
    IntervalOpened,
)
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.rows import AttemptChange, ClosedInterval
from pi_workflows.domain.run.events import RunEvent

SQL: Final = load(__package__, "attempts.sql")


def started(event: Stored, fact: AttemptStarted, db: Projection) -> None:
    """Insert a new attempt and its first active interval."""
    db.write(SQL["insert_attempt"], **fact.attempt.columns())
    db.write(SQL["open_interval"], **fact.interval.columns())


def reopened(event: Stored, fact: IntervalOpened, db: Projection) -> None:
    """Insert a further active interval of a waiting attempt."""
    db.write(SQL["open_interval"], **fact.opened.columns())


def linked(event: Stored, fact: EntriesLinked, db: Projection) -> None:
    """Insert which entries of a session belong to an attempt."""
    for entry in fact.entries:
        db.write(SQL["link_entry"], **entry.columns())


def settled(event: Stored, fact: AttemptSettled, db: Projection) -> None:
    """End an attempt and give it its place in the order of steps."""
    _change(event, fact.attempt, fact.interval, db)
    db.write(
        SQL["insert_step"],
        run_id=fact.run_id,
        step_index=fact.step_index,
        attempt_id=fact.attempt.attempt_id,
    )


def changed(event: Stored, fact: RunEvent, db: Projection) -> None:
    """Set what an event of the run changed in its open attempt."""
    _change(event, fact.attempt, fact.interval, db)


def _change(
    event: Stored,
    attempt: AttemptChange | None,
    interval: ClosedInterval | None,
    db: Projection,
) -> None:
    """Set the changed columns of an attempt and close its interval."""
    if attempt is not None:
        db.write(SQL["change_attempt"], at_ms=event.at_ms, **attempt.columns())
    if interval is not None:
        db.write(SQL["close_interval"], **interval.columns())
