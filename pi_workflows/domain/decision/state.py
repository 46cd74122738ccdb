"""What an answer to a decision depends on, and the drafts that several of its ends share."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import DECISION_CANDIDATES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.route import is_approved
from pi_workflows.domain.decision.events import DecisionResolved
from pi_workflows.domain.fact import Draft, Event
from pi_workflows.domain.rows import CandidateOutcome, CandidateRow, Provenance, ResolutionRow
from pi_workflows.domain.run.state import RunState, pending_request

SQL: Final = load(__package__, "reads.sql")

Ending = Literal["completed", "failed", "timed_out", "cancelled"]


class DecisionState(NamedTuple):
    """One decision, and how it was resolved if it was."""

    decision_id: str
    run_id: str
    attempt_id: str
    title: str
    subject_hash: bytes
    choices_hash: bytes
    request_digest: bytes
    deadline_at: int | None
    default_response_hash: bytes | None
    outcome: Literal["accepted", "cancelled"] | None
    provenance: Provenance | None
    response_hash: bytes | None
    reason: str | None
    resolved_at: int | None

    @property
    def is_resolved(self) -> bool:
        """Whether there is a winner, or will never be one."""
        return self.outcome is not None

    def is_due(self, at_ms: int) -> bool:
        """Whether its deadline has come: from then on no person decides."""
        return self.deadline_at is not None and at_ms >= self.deadline_at

    def accepted(
        self, provenance: Provenance, response_hash: str, at_ms: int, *, channel: str | None = None
    ) -> ResolutionRow:
        """Return the resolution that is a response."""
        return ResolutionRow(
            decision_id=self.decision_id,
            outcome="accepted",
            provenance=provenance,
            response_hash=response_hash,
            reason=None,
            channel=channel,
            request_digest=self.request_digest.hex(),
            resolved_at=at_ms,
        )

    def cancelled(self, provenance: Provenance, reason: str, at_ms: int) -> Draft:
        """Return the event after which nobody decides any more."""
        row = ResolutionRow(
            decision_id=self.decision_id,
            outcome="cancelled",
            provenance=provenance,
            response_hash=None,
            reason=reason,
            channel=None,
            request_digest=self.request_digest.hex(),
            resolved_at=at_ms,
        )
        return self.draft(DecisionResolved(run_id=self.run_id, resolution=row))

    def candidate(
        self,
        submission_id: str,
        source: Literal["human", "policy", "control", "channel"],
        candidate_hash: str,
        outcome: CandidateOutcome,
        at_ms: int,
    ) -> CandidateRow:
        """Return an answer with what became of it."""
        return CandidateRow(
            decision_id=self.decision_id,
            attempt_id=submission_id,
            source=source,
            channel=None,
            candidate_hash=candidate_hash,
            outcome=outcome,
            result_hash=None,
            submitted_at=at_ms,
        )

    def draft(self, event: Event) -> Draft:
        """Return an event of this decision's own resource."""
        return Draft("decision", self.decision_id, event, self.run_id)

    def document(self, read: Read) -> dict[str, Json]:
        """Return the decision as those learn of it who tried to make it; nobody is named."""
        document: dict[str, Json] = {"decisionId": self.decision_id}
        if self.outcome is not None:
            document["outcome"] = self.outcome
            document["provenance"] = self.provenance
            document["resolvedAt"] = self.resolved_at
        if self.response_hash is not None:
            document["response"] = canonical.decode(read.blob(self.response_hash))
        if self.reason is not None:
            document["reason"] = self.reason
        return document


class Candidate(NamedTuple):
    """An answer that was given before."""

    submission_id: str
    source: Literal["human", "policy", "control", "channel"]
    candidate_hash: bytes
    outcome: CandidateOutcome


def decision_state(read: Read, decision_id: str) -> DecisionState:
    """Return a decision. Raises NotFound (`decisionMissing`) when there is none of that name."""
    found = read.one(DecisionState, SQL["decision"], decision_id=decision_id)
    if found is None:
        raise NotFound(
            f"There is no decision {decision_id}.", code="decisionMissing", field="decisionId"
        )
    return found


def decision_of(read: Read, run_id: str, attempt_id: str) -> DecisionState:
    """Return the decision that an attempt asked for. Raises NotFound as `decision_state`."""
    return decision_state(read, ids.decision_id(run_id, attempt_id))


def candidate_of(read: Read, decision_id: str, submission_id: str) -> Candidate | None:
    """Return the answer that was given under a name, or None."""
    return read.one(
        Candidate, SQL["candidate"], decision_id=decision_id, submission_id=submission_id
    )


def takes_candidates(read: Read, decision_id: str) -> bool:
    """Whether one more answer of a decision is kept."""
    count = read.one(
        int,
        SQL["candidate_count"],
        decision_id=decision_id,
        candidates_max=DECISION_CANDIDATES_MAX,
    )
    return (count or 0) < DECISION_CANDIDATES_MAX


def is_resolved_as(read: Read, run_id: str, attempt_id: str, digest: bytes) -> bool:
    """Whether an attempt's output is the response that its decision was resolved with."""
    decision = decision_of(read, run_id, attempt_id)
    return decision.outcome == "accepted" and decision.response_hash == digest


def approves(read: Read, run_id: str, node_path: str, request_digest: bytes) -> bool:
    """Whether what a person was shown last at a node, and accepted, is exactly this request.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        node_path: The node that asks.
        request_digest: SHA-256 of the canonical request of an action's effect.
    """
    newest = read.one(DecisionState, SQL["newest_of_node"], run_id=run_id, node_id=node_path)
    if newest is None or newest.outcome != "accepted":
        return False
    return is_approved(newest.subject_hash, request_digest)


def closed_by_end(read: Read, state: RunState, ending: Ending, at_ms: int) -> list[Draft]:
    """Return the end of the decision that a run leaves open when it ends.

    Args:
        read: Reads of the deciding transaction.
        state: The run as it is before its end.
        ending: How it ends.
        at_ms: When it ends.

    Returns:
        The resolution `explicit_cancel`; none when nothing was to be decided.
    """
    request = pending_request(read, state.run_id)
    if request is None or request.kind != "decision":
        return []
    decision = decision_of(read, state.run_id, request.attempt_id)
    reason = f"the run ended: {ending}"
    return [] if decision.is_resolved else [decision.cancelled("explicit_cancel", reason, at_ms)]
