"""Facts about decisions. Each belongs to the decision's own resource.

Who decided stands in the event's own column and in no payload.
"""

from __future__ import annotations

from typing import ClassVar

from pi_workflows.domain.fact import Event
from pi_workflows.domain.rows import CandidateRow, DecisionRow, ResolutionRow


class DecisionRequested(Event):
    """A person is asked, once and for all in these words."""

    type: ClassVar[str] = "decision.requested"

    decision: DecisionRow


class DecisionSubmitted(Event):
    """An answer arrived that decided nothing."""

    type: ClassVar[str] = "decision.submitted"

    run_id: str
    candidate: CandidateRow


class DecisionResolved(Event):
    """The decision is made, or will never be. An answer that made it comes along."""

    type: ClassVar[str] = "decision.resolved"

    run_id: str
    resolution: ResolutionRow
    candidate: CandidateRow | None = None
