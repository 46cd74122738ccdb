"""Asking a person for a decision: the request document, its digests and its deadline."""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, TransitionDenied
from pi_workflows.base.limits import TITLE_CHARS_MAX
from pi_workflows.base.sql import Read
from pi_workflows.definition.decision import (
    DecisionQuestion,
    policy_problems,
    presentation_problems,
)
from pi_workflows.definition.presentation_text import question_text
from pi_workflows.domain.decision.events import DecisionRequested
from pi_workflows.domain.fact import Draft
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.rows import DecisionRow
from pi_workflows.domain.run.state import OpenAttempt, RunState, snapshot_of

# What was shown is never changed under the same decision.
REVISION: Final = 1
_SCHEMA: Final = "pi-workflows.decision-request.v1"
_ASKED: Final = "asked"


class Asked(NamedTuple):
    """Everything that a person is asked, by value or by digest; one digest covers it all."""

    decision_id: str
    run_id: str
    node_id: str
    visit: int
    attempt_id: str
    title: str
    audience: str
    revision: int
    subject_digest: str
    presentation_digest: str
    choices_digest: str
    deadline_at: int | None
    default_response_digest: str | None

    def blob(self) -> Blob:
        """Return the request document; what is absent is left out."""
        document: dict[str, Json] = {"schema": _SCHEMA}
        for name, value in self._asdict().items():
            if value is not None:
                document[to_camel(name)] = value
        return Blob.json(document)


def requested(
    read: Read, state: RunState, attempt: OpenAttempt, contract: Blob, at_ms: int
) -> tuple[list[Draft], list[Blob]]:
    """Return the decision that an attempt asks for, as a part of its question.

    Args:
        read: Reads of the deciding transaction.
        state: The run.
        attempt: The open attempt.
        contract: The question's contract; its member `decision` is what is asked.
        at_ms: When it is asked; deadlines count from here.

    Returns:
        The decision, and in an interactive run the message that tells of it; the values that both
        name.

    Raises:
        PayloadInvalid: `decisionInvalid`, the member is missing, has another form, or is over a
            limit.
        TransitionDenied: `decisionMismatch`, the definition has another audience, other choices or
            another deadline.
    """
    question, subject = _read(contract)
    declared = snapshot_of(read, state).nodes[attempt.node_id].human_decision
    if declared != question.policy:
        raise TransitionDenied(
            f"{attempt.node_id} does not declare this decision.", code="decisionMismatch"
        )
    row, blobs = _row(state, attempt, question, subject, at_ms)
    key = row.decision_id
    drafts = [Draft("decision", key, DecisionRequested(decision=row), state.run_id)]
    if state.execution_mode == "interactive":
        text = Blob.text(question_text(question, row.deadline_at))
        blobs.append(text)
        drafts.append(
            messages.created(
                read,
                run_id=state.run_id,
                session_id=state.origin_session_id,
                kind="decision",
                source_id=key,
                key=_ASKED,
                content=text,
                at_ms=at_ms,
            )
        )
    return drafts, blobs


def _row(
    state: RunState, attempt: OpenAttempt, question: DecisionQuestion, subject: Blob, at_ms: int
) -> tuple[DecisionRow, list[Blob]]:
    """Return a decision as it is stored, and the values that it names."""
    decision_id = ids.decision_id(state.run_id, attempt.attempt_id)
    presentation = Blob.json(question.presentation.document())
    choices = Blob.json([choice.document() for choice in question.choices])
    default = question.default_response
    response = Blob.json(default.document()) if default is not None else None
    deadline_ms = question.deadline_ms
    asked = Asked(
        decision_id=decision_id,
        run_id=state.run_id,
        node_id=attempt.node_id,
        visit=attempt.visit_number,
        attempt_id=attempt.attempt_id,
        title=question.title,
        audience=question.audience,
        revision=REVISION,
        subject_digest=subject.hex,
        presentation_digest=presentation.hex,
        choices_digest=choices.hex,
        deadline_at=None if deadline_ms is None else at_ms + deadline_ms,
        default_response_digest=response.hex if response is not None else None,
    )
    request = asked.blob()
    row = DecisionRow(
        decision_id=decision_id,
        resource_id=ids.resource_id("decision", decision_id),
        run_id=state.run_id,
        attempt_id=attempt.attempt_id,
        audience=question.audience,
        title=question.title,
        subject_hash=subject.hex,
        presentation_hash=presentation.hex,
        choices_hash=choices.hex,
        request_digest=request.hex,
        presentation_revision=REVISION,
        deadline_at=asked.deadline_at,
        default_response_hash=asked.default_response_digest,
        request_hash=request.hex,
        created_at=at_ms,
    )
    blobs = [subject, presentation, choices, request, response]
    return row, [blob for blob in blobs if blob is not None]


def _read(contract: Blob) -> tuple[DecisionQuestion, Blob]:
    """Return what is asked, and its subject as it is stored."""
    document = canonical.decode(contract.content)
    member = document.get("decision") if isinstance(document, dict) else None
    if not isinstance(member, dict) or "subject" not in member:
        raise _invalid("the contract has no decision with a subject")
    try:
        question = DecisionQuestion.model_validate_json(canonical.encode(member))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _invalid(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    problems = [*policy_problems(question), *presentation_problems(question.presentation)]
    if not 1 <= len(question.title) <= TITLE_CHARS_MAX:
        problems.append(f"title: use 1 to {TITLE_CHARS_MAX} characters")
    if problems:
        raise _invalid("; ".join(problems))
    return question, Blob.json(member["subject"])


def _invalid(why: str) -> PayloadInvalid:
    """Return the refusal of a question that no person could be shown."""
    return PayloadInvalid(f"decision: {why}", code="decisionInvalid", field="contract")
