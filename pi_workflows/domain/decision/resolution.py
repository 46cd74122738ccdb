"""The one end of a decision: an answer that a person gave, or what its deadline says.

Whoever comes second adopts the winner or learns of it (state contract, section 4): the primary key
of the resolutions decides, and every decider looks at it inside the deciding transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    AuthorityDenied,
    IdempotencyConflict,
    Outcome,
    PayloadInvalid,
    Refused,
    RevisionConflict,
    TransitionDenied,
)
from pi_workflows.base.sql import Read
from pi_workflows.definition.decision import Choice, Response, response_problem
from pi_workflows.domain.decision.events import DecisionResolved, DecisionSubmitted
from pi_workflows.domain.decision.state import (
    Candidate,
    DecisionState,
    candidate_of,
    decision_of,
    decision_state,
    takes_candidates,
)
from pi_workflows.domain.fact import Actor, Command, Context, Decided, Draft
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.request.closing import DECISION_EXPIRED, closed
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.request.state import (
    Asked,
    asked,
    require_kind,
    require_new_submission,
    require_open,
)
from pi_workflows.domain.rows import (
    CandidateOutcome,
    CandidateRow,
    QueueChange,
    SubmissionRow,
)
from pi_workflows.domain.run.state import RunState, live_run, run_state


@dataclass(frozen=True, slots=True)
class AnswerDecision(Command):
    """Answer a question that only a person may answer.

    Attributes:
        request_id: The question.
        request_revision: The question's revision as the person read it.
        submission_id: The answer's own identity.
        idempotency_key: The command's key.
        response: The choice, and the text typed to it.
        has_operator: Whether anybody could prove to be a person; told in a refusal only.
    """

    request_id: str
    request_revision: int
    submission_id: str
    idempotency_key: str
    response: Blob
    has_operator: bool = True


@dataclass(frozen=True, slots=True)
class CloseDecision(Command):
    """The deadline of a decision has come.

    Attributes:
        decision_id: The decision.
    """

    decision_id: str


def answer_decision(command: AnswerDecision, context: Context, read: Read) -> Decided:
    """Decide on an answer: the first that a person gives in time wins, and the run is queued.

    An answer that decides nothing is kept with what became of it, unless it can be corrected.

    Raises:
        NotFound: There is no such run or question.
        TransitionDenied: The question is no decision.
        RevisionConflict: `runPaused`.
        IdempotencyConflict: `submissionReused`, the answer's ID belongs to another one.
        PayloadInvalid: `answerInvalid`, the response is none of the choices; it may be corrected.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    require_kind(request, "decision")
    decision = decision_of(read, command.run_id, request.attempt_id)
    known = candidate_of(read, decision.decision_id, command.submission_id)
    if known is not None:
        return _repeated(read, command, decision, known)
    require_new_submission(read, command.submission_id)
    given = _Given(read, context, decision, command.submission_id, command.response)
    if not _is_person(context.actor):
        refusal = _protected() if command.has_operator else _nobody()
        return given.refused("rejected", refusal)
    if decision.is_resolved:
        return _second(given, command)
    require_open(state, request, request.revision)
    if command.request_revision != request.revision:
        stale = RevisionConflict(
            "The decision changed since it was read.",
            hint=f"Read it again: pi-workflows show {state.run_id}",
        )
        return given.refused("rejected", stale)
    if decision.is_due(context.at_ms):
        late = RevisionConflict("The time to decide is over.", code=DECISION_EXPIRED)
        return given.refused("rejected", late)
    _require_choice(read, decision, command.response)
    return _won(given, command, state, request)


def refused_candidate(
    read: Read, context: Context, request: Asked, submission_id: str, value: Blob
) -> Decided:
    """Refuse an answer to a decision that came the way of ordinary ones, and keep that it did.

    Args:
        read: Reads of the deciding transaction.
        context: When and by whom.
        request: The question, a decision.
        submission_id: The answer's own identity.
        value: The answer.
    """
    decision = decision_of(read, request.run_id, request.attempt_id)
    if candidate_of(read, decision.decision_id, submission_id) is not None:
        raise _protected()
    given = _Given(read, context, decision, submission_id, value)
    return given.refused("rejected", _protected())


def close_decision(command: CloseDecision, context: Context, read: Read) -> Decided:
    """Decide what a decision is at its deadline: its default, or that nobody made it.

    A pause does not stop it; the run then goes on when it is resumed.

    Raises:
        NotFound: There is no such run or decision.
        TransitionDenied: The run has ended, or `decisionNotDue`.
    """
    decision = decision_state(read, command.decision_id)
    if decision.is_resolved:
        return Decided(outcome=Outcome.ADOPTED)
    state = live_run(read, command.run_id)
    if decision.run_id != state.run_id or not decision.is_due(context.at_ms):
        raise TransitionDenied("The decision has time left.", code="decisionNotDue")
    request = asked(read, state.run_id, ids.request_id(state.run_id, decision.attempt_id))
    if decision.default_response_hash is None:
        failure = Failure(DECISION_EXPIRED, f"nobody decided in time: {decision.title}")
        drafts, blobs = closed(read, state, request, failure, context.at_ms)
        end = decision.cancelled("expired_no_default", "nobody decided in time", context.at_ms)
        return Decided(drafts=(drafts[0], end, *drafts[1:]), blobs=blobs)
    response = Blob.of(read.blob(decision.default_response_hash), "application/json")
    submission_id = ids.policy_submission_id(decision.decision_id)
    candidate = decision.candidate(submission_id, "policy", response.hex, "won", context.at_ms)
    resolution = decision.accepted("timeout_policy", response.hex, context.at_ms)
    event = DecisionResolved(run_id=state.run_id, resolution=resolution, candidate=candidate)
    return Decided(
        drafts=(
            _settled(state, request, candidate, submission_id),
            decision.draft(event),
            *_told(read, decision),
        )
    )


@dataclass(frozen=True, slots=True)
class _Given:
    """An answer that is new, and what it is about."""

    read: Read
    context: Context
    decision: DecisionState
    submission_id: str
    value: Blob

    def row(self, outcome: CandidateOutcome) -> CandidateRow:
        """Return it as it is kept."""
        source = _source(self.context.actor)
        return self.decision.candidate(
            self.submission_id, source, self.value.hex, outcome, self.context.at_ms
        )

    def kept(self, outcome: CandidateOutcome) -> tuple[Draft, ...]:
        """Return the event that keeps it; none when there are too many of them."""
        if not takes_candidates(self.read, self.decision.decision_id):
            return ()
        event = DecisionSubmitted(run_id=self.decision.run_id, candidate=self.row(outcome))
        return (self.decision.draft(event),)

    def refused(self, outcome: CandidateOutcome, refusal: Refused) -> Decided:
        """Keep it with what became of it, and refuse it; who was late learns what was decided."""
        drafts = self.kept(outcome)
        decision = self.decision
        return Decided(
            drafts=drafts,
            blobs=(self.value,) if drafts else (),
            receipt={"decision": decision.document(self.read)} if decision.is_resolved else {},
            refusal=refusal,
        )


def _won(given: _Given, command: AnswerDecision, state: RunState, request: Asked) -> Decided:
    """Make the decision: settle the question, and queue the run to take the answer."""
    decision, response, at_ms = given.decision, given.value, given.context.at_ms
    candidate = given.row("won")
    resolution = decision.accepted("human", response.hex, at_ms)
    event = DecisionResolved(run_id=state.run_id, resolution=resolution, candidate=candidate)
    resolved: dict[str, Json] = {
        "decisionId": decision.decision_id,
        "outcome": "accepted",
        "provenance": "human",
        "resolvedAt": at_ms,
        "response": canonical.decode(response.content),
    }
    return Decided(
        drafts=(
            _settled(state, request, candidate, command.idempotency_key),
            decision.draft(event),
            *_told(given.read, decision),
        ),
        blobs=(response,),
        receipt=_receipt(command, resolved),
    )


def _second(given: _Given, command: AnswerDecision) -> Decided:
    """Adopt the winner when it is the same answer; else tell who came too late."""
    decision = given.decision
    if decision.response_hash != given.value.digest:
        return given.refused("already_resolved", _too_late(decision))
    drafts = given.kept("adopted")
    return Decided(
        drafts=drafts,
        blobs=(given.value,) if drafts else (),
        receipt=_receipt(command, decision.document(given.read)),
        outcome=Outcome.ADOPTED,
    )


def _settled(
    state: RunState, request: Asked, candidate: CandidateRow, idempotency_key: str
) -> Draft:
    """Return the run's part of an accepted decision."""
    at_ms = candidate.submitted_at
    event = RequestSubmitted(
        run_id=state.run_id,
        queue=_queue(state, at_ms),
        submission=SubmissionRow(
            submission_id=candidate.attempt_id,
            request_id=request.request_id,
            idempotency_key=idempotency_key,
            request_revision=request.revision,
            payload_hash=candidate.candidate_hash,
            outcome="accepted",
            receipt_hash=None,
            submitted_at=at_ms,
        ),
        request=request.settled(candidate.attempt_id, at_ms),
    )
    return state.draft(event)


def _queue(state: RunState, at_ms: int) -> QueueChange | None:
    """Return the run's place in the queue: a paused one takes none before it is resumed."""
    return None if state.paused else state.queue("queued", available_at=at_ms)


def _told(read: Read, decision: DecisionState) -> list[Draft]:
    """Return the end of the message that would still tell of the decision."""
    return messages.cancelled(
        read, decision.run_id, kinds=frozenset({"decision"}), source_id=decision.decision_id
    )


def _repeated(
    read: Read, command: AnswerDecision, decision: DecisionState, known: Candidate
) -> Decided:
    """Say of an answer that was given before what became of it.

    Raises:
        IdempotencyConflict: `submissionReused`, it was another one.
        Refused: It was refused then.
    """
    if known.candidate_hash != command.response.digest:
        raise IdempotencyConflict(
            f"Submission {command.submission_id} is another answer.",
            code="submissionReused",
            field="submissionId",
            hint="Give each answer an ID of its own.",
        )
    if known.outcome == "already_resolved":
        raise _too_late(decision)
    if known.outcome == "rejected":
        raise TransitionDenied("The answer was refused before.", code="answerRefused")
    return Decided(receipt=_receipt(command, decision.document(read)), outcome=Outcome.ADOPTED)


def _require_choice(read: Read, decision: DecisionState, response: Blob) -> None:
    """Refuse a response that is none of the choices. Raises PayloadInvalid `answerInvalid`."""
    try:
        given = Response.model_validate_json(response.content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem: str | None = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    else:
        problem = response_problem(read.document(_choices, decision.choices_hash), given)
    if problem is not None:
        raise PayloadInvalid(problem, code="answerInvalid", field="response")


def _choices(content: bytes) -> tuple[Choice, ...]:
    """Read stored choices."""
    found = canonical.decode(content)
    assert isinstance(found, list), "choices are a list"
    return tuple(Choice.model_validate_json(canonical.encode(each)) for each in found)


def _is_person(actor: Actor) -> bool:
    """Whether a person was proved behind an answer."""
    return actor.type in ("human", "channel")


def _source(actor: Actor) -> Literal["human", "policy", "control", "channel"]:
    """Return where an answer came from, as it is kept."""
    match actor.type:
        case "human":
            return "human"
        case "channel":
            return "channel"
        case "policy":
            return "policy"
        case _:
            return "control"


def _protected() -> AuthorityDenied:
    """Return the refusal of whoever is not proved to be a person."""
    return AuthorityDenied(
        "Only a person decides this: it needs the operator's passphrase.",
        code="decisionProtected",
        hint="Decide it at a terminal: pi-workflows answer RUN CHOICE",
    )


def _nobody() -> AuthorityDenied:
    """Return the refusal where nobody can be proved to be a person yet."""
    return AuthorityDenied(
        "Only a person decides this, and no operator is set up.",
        code="operatorMissing",
        hint="Set a passphrase at a terminal: pi-workflows operator init",
    )


def _too_late(decision: DecisionState) -> RevisionConflict:
    """Return the refusal of an answer that came second."""
    by: dict[str | None, str] = {
        "human": "was made by somebody else",
        "timeout_policy": "was made by its default, as its time was over",
        "explicit_cancel": "was cancelled",
        "expired_no_default": "can no longer be made, as its time was over",
    }
    return RevisionConflict(f"The decision {by[decision.provenance]}.", code="alreadyDecided")


def _receipt(command: AnswerDecision, decision: dict[str, Json]) -> dict[str, Json]:
    """Return what whoever decided is told."""
    return {"requestId": command.request_id, "runId": command.run_id, "decision": decision}
