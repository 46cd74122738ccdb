"""Facts about attempts."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pi_workflows.domain.fact import Event, Integer
from pi_workflows.domain.rows import (
    AttemptChange,
    AttemptRow,
    ClosedInterval,
    IntervalRow,
    RequestChange,
    UpdateRow,
)
from pi_workflows.domain.run.events import RunEvent
from pi_workflows.domain.session_rows import EntryLinkRow

CloseCause: TypeAlias = Literal["turnEnded", "disconnected", "serverLost"]


class AttemptStarted(Event):
    """A node began: creation, start and first active interval in one fact."""

    type: ClassVar[str] = "attempt.started"

    attempt: AttemptRow
    interval: IntervalRow


class AttemptSettled(Event):
    """An attempt ended and took its place in the order of steps."""

    type: ClassVar[str] = "attempt.settled"

    run_id: str
    node_id: str
    step_index: Integer
    attempt: AttemptChange
    interval: ClosedInterval | None = None
    request: RequestChange | None = None


class UpdateRecorded(Event):
    """A node published progress."""

    type: ClassVar[str] = "update.recorded"

    run_id: str
    node_id: str
    update: UpdateRow


class IntervalOpened(Event):
    """The session works on the attempt: its time runs."""

    type: ClassVar[str] = "attempt.interval_opened"

    run_id: str
    opened: IntervalRow


class IntervalClosed(RunEvent):
    """The session works on the attempt no more, and nothing else changed: its time stands."""

    type: ClassVar[str] = "attempt.interval_closed"

    cause: CloseCause


class EntriesLinked(Event):
    """A capture of the attempt ended: these entries of the session belong to it."""

    type: ClassVar[str] = "attempt.entries_linked"

    run_id: str
    entries: tuple[EntryLinkRow, ...]
