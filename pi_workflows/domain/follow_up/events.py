"""Facts about follow-ups. Each has a resource of its own."""

from __future__ import annotations

from typing import ClassVar

from pi_workflows.domain.fact import Event
from pi_workflows.domain.rows import FollowUpChange, FollowUpRow


class FollowUpQueued(Event):
    """A prompt waits for the end of a run."""

    type: ClassVar[str] = "follow_up.queued"

    follow_up: FollowUpRow


class FollowUpEnded(Event):
    """The parts that both ends of a waiting prompt have."""

    run_id: str
    follow_up: FollowUpChange


class FollowUpRemoved(FollowUpEnded):
    """Somebody took the prompt back before it was sent."""

    type: ClassVar[str] = "follow_up.removed"


class FollowUpCancelled(FollowUpEnded):
    """The run did not complete: what was to follow it does not."""

    type: ClassVar[str] = "follow_up.cancelled"
