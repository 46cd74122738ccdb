"""`human_decisions`, `human_decision_submissions` and `human_decision_resolutions`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.decision.events import (
    DecisionRequested,
    DecisionResolved,
    DecisionSubmitted,
)
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.rows import CandidateRow

SQL: Final = load(__package__, "decisions.sql")


def requested(event: Stored, fact: DecisionRequested, db: Projection) -> None:
    """Insert what a person is asked."""
    db.write(SQL["insert_decision"], **fact.decision.columns())


def submitted(event: Stored, fact: DecisionSubmitted, db: Projection) -> None:
    """Insert an answer that decided nothing."""
    _given(event, fact.candidate, db)


def resolved(event: Stored, fact: DecisionResolved, db: Projection) -> None:
    """Insert the end of a decision, and the answer that made it."""
    if fact.candidate is not None:
        _given(event, fact.candidate, db)
    actor_id = event.actor_id if fact.resolution.provenance == "human" else None
    db.write(SQL["insert_resolution"], actor_id=actor_id, **fact.resolution.columns())


def _given(event: Stored, candidate: CandidateRow, db: Projection) -> None:
    """Insert an answer; who gave it stands in the event's own column."""
    actor_id = None if candidate.source == "policy" else event.actor_id
    db.write(SQL["insert_candidate"], actor_id=actor_id, **candidate.columns())
