"""What the kernel needs of the projections; the server and the audit hand in the same module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pi_workflows.base.sql import Projection
from pi_workflows.domain.fact import Stored, ViewRef
from pi_workflows.domain.session.journal import Checkpoint, Flush, Progress


class Projectors(Protocol):
    """The four entries into the tables, live and in replay."""

    def raise_revision(self, event: Stored, db: Projection) -> None:
        """Raise the revision of the event's resource and move its lease."""
        ...

    def apply_event(self, event: Stored, db: Projection) -> None:
        """Write the domain rows of one event."""
        ...

    def apply_flush(
        self,
        flush: Flush,
        progress: Iterable[Progress],
        checkpoints: Iterable[Checkpoint],
        at_ms: int,
        db: Projection,
    ) -> None:
        """Take in rows that were appended to the session journals."""
        ...

    def apply_view(
        self,
        view: ViewRef,
        events: tuple[Stored, ...],
        flush: Flush | None,
        at_ms: int,
        db: Projection,
    ) -> None:
        """Write the viewer rows of one command."""
        ...
