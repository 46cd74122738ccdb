"""Facts about captures. Each belongs to the segment's own resource.

What a segment holds is no event: it is appended to the session journals.
"""

from __future__ import annotations

from typing import ClassVar

from pi_workflows.domain.fact import Event
from pi_workflows.domain.session_rows import SegmentEnd, SegmentRow


class SegmentOpened(Event):
    """A recorder began to capture a session for a run."""

    type: ClassVar[str] = "segment.opened"

    segment: SegmentRow


class SegmentEnded(Event):
    """Nothing is appended to the segment any more."""

    run_id: str
    segment: SegmentEnd


class SegmentCompleted(SegmentEnded):
    """Everything that the recorder saw was captured."""

    type: ClassVar[str] = "segment.completed"


class SegmentFailed(SegmentEnded):
    """The recorder lost something, or gave up."""

    type: ClassVar[str] = "segment.failed"
