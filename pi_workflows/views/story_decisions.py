"""How a story tells the events of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.base.measures import duration
from pi_workflows.domain.decision.events import (
    DecisionRequested,
    DecisionResolved,
    DecisionSubmitted,
)
from pi_workflows.domain.rows import CandidateOutcome
from pi_workflows.views.story_narrator import Narrator

_FATES: Final[Mapping[CandidateOutcome, str]] = {
    "won": "which decided it",
    "adopted": "which had been decided already",
    "already_resolved": "which came too late",
    "rejected": "which was refused",
}


def requested(narrator: Narrator, fact: DecisionRequested) -> None:
    """Tell that only a person may answer, and until when."""
    decision = fact.decision
    within = ""
    if decision.deadline_at is not None:
        within = f" within {duration(decision.deadline_at - decision.created_at)}"
        if decision.default_response_hash is not None:
            within += ", else its default counts"
    narrator.add(f"only a person may decide it{within}")


def submitted(narrator: Narrator, fact: DecisionSubmitted) -> None:
    """Tell that an answer decided nothing."""
    given = narrator.values.described(fact.candidate.candidate_hash)
    fate = _FATES[fact.candidate.outcome]
    narrator.say(f"{narrator.who} answered the decision with {given}, {fate}")


def resolved(narrator: Narrator, fact: DecisionResolved) -> None:
    """Tell what the decision came to, where the run's own event does not say it."""
    match fact.resolution.provenance:
        case "human":
            narrator.add("a person decided it")
        case "timeout_policy":
            narrator.add("nobody had decided in time")
        case "explicit_cancel":
            narrator.add("its decision was cancelled")
        case "expired_no_default":
            narrator.add("nobody can decide it any more")
