"""What a session's model submits for its step: kept first, judged next, and one of them wins."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    IdempotencyConflict,
    NotFound,
    Outcome,
    RevisionConflict,
)
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.message.reminder import reminded, unanswered
from pi_workflows.domain.request.closing import closed, require_in_time
from pi_workflows.domain.request.events import RequestSubmitted, RequestValidated
from pi_workflows.domain.request.state import (
    SQL,
    Asked,
    Submission,
    asked,
    require_kind,
    require_new_submission,
    require_open,
    require_target,
    submission,
    validating,
)
from pi_workflows.domain.rows import ClosedInterval, SubmissionChange, SubmissionRow
from pi_workflows.domain.run.state import RunState, open_attempt, run_state


@dataclass(frozen=True, slots=True)
class SubmitCandidate(Command):
    """Hand in what a model made of its step. It is judged afterwards.

    Attributes:
        request_id: The step's request.
        request_revision: Its revision as the session read it.
        submission_id: The candidate's own identity.
        idempotency_key: The request's key, under which a repeat finds the same candidate.
        session_id: The session that asks; None for the runner of a step without one.
        value: The candidate.
    """

    request_id: str
    request_revision: int | None
    submission_id: str
    idempotency_key: str
    session_id: str | None
    value: Blob


@dataclass(frozen=True, slots=True)
class JudgeSubmission(Command):
    """Say what a candidate is worth.

    Attributes:
        request_id: The request.
        submission_id: The candidate.
        value: What the workflow's own code made of it; None when it refused.
        error: Why it refused, one line for the model; None when it did not.
        elapsed_ms: Active time of the open interval, which an accepted candidate closes.
    """

    request_id: str
    submission_id: str
    value: Blob | None = None
    error: str | None = None
    elapsed_ms: int = 0


@dataclass(frozen=True, slots=True)
class SubmitText(Command):
    """Hand in the exact text that a model's turn settled with; it is judged at once.

    Attributes:
        request_id: The step's request.
        request_revision: Its revision as the session read it.
        submission_id: The text's own identity.
        idempotency_key: The request's key.
        session_id: The session that asks.
        text: The visible text.
        entry_id: The Pi entry that holds it.
        elapsed_ms: Active time of the open interval, which accepted text closes.
    """

    request_id: str
    request_revision: int | None
    submission_id: str
    idempotency_key: str
    session_id: str
    text: str
    entry_id: str
    elapsed_ms: int = 0


def submit_candidate(command: SubmitCandidate, context: Context, read: Read) -> Decided:
    """Decide to take a candidate, or find the one that was taken under its key.

    Raises:
        NotFound: There is no such run or request.
        TransitionDenied: `requestKind`, `requestCancelled`, `requestExpired` or `requestTarget`.
        RevisionConflict: `runPaused`, `staleRevision`, `alreadyAnswered`, or `submissionPending`:
            another candidate is being judged.
        IdempotencyConflict: The key or the ID names another candidate.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    require_kind(request, "agent")
    require_target(request, command.session_id)
    known = read.one(
        Submission,
        SQL["submission_by_key"],
        request_id=request.request_id,
        idempotency_key=command.idempotency_key,
    )
    if known is not None:
        return _repeated(read, known, command.submission_id, command.value)
    _require_acceptable(read, state, request, command.request_revision, command.submission_id)
    event = RequestSubmitted(
        run_id=state.run_id,
        submission=_row(command, request, command.value, "validating", context.at_ms),
    )
    return Decided(
        drafts=(state.draft(event),),
        blobs=(command.value,),
        receipt=_receipt(request.request_id, command.submission_id),
    )


def judge_submission(command: JudgeSubmission, context: Context, read: Read) -> Decided:
    """Decide what became of a candidate; one that was judged already is adopted.

    Raises:
        NotFound: There is no such run, request or submission.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    candidate = submission(read, command.submission_id)
    if candidate is None or candidate.request_id != request.request_id:
        raise NotFound(
            f"Request {request.request_id} has no submission {command.submission_id}.",
            code="submissionMissing",
            field="submissionId",
        )
    if candidate.outcome != "validating":
        return _repeated(read, candidate, candidate.submission_id, None)
    if command.value is None:
        return _refused(command, read, state, request, context.at_ms)
    change = SubmissionChange(
        submission_id=command.submission_id, outcome="accepted", receipt_hash=command.value.hex
    )
    event = RequestValidated(
        run_id=state.run_id,
        request=request.settled(command.submission_id, context.at_ms),
        submissions=(change,),
        queue=state.queue("queued", available_at=context.at_ms),
        interval=_closed(read, state, context.at_ms, command.elapsed_ms),
    )
    return Decided(
        drafts=(state.draft(event), *_told(read, state, request)),
        blobs=(command.value,),
        receipt=_receipt(request.request_id, command.submission_id),
    )


def submit_text(command: SubmitText, context: Context, read: Read) -> Decided:
    """Decide on the text of a turn: it is the step's output as it stands, or it is refused.

    Raises as `submit_candidate`.
    """
    state = run_state(read, command.run_id)
    request = asked(read, command.run_id, command.request_id)
    require_kind(request, "assistant")
    require_target(request, command.session_id)
    value = Blob.json(command.text)
    known = read.one(
        Submission,
        SQL["submission_by_key"],
        request_id=request.request_id,
        idempotency_key=command.idempotency_key,
    )
    if known is not None:
        return _repeated(read, known, command.submission_id, value)
    _require_acceptable(read, state, request, command.request_revision, command.submission_id)
    chars_max = read.document(_chars_max, request.contract_hash)
    error = _text_error(command.text, chars_max)
    is_accepted = error is None
    document: dict[str, Json] = (
        {"error": error} if error is not None else _text_receipt(command, chars_max)
    )
    receipt = Blob.json(document)
    event = RequestSubmitted(
        run_id=state.run_id,
        submission=_row(
            command, request, value, "accepted" if is_accepted else "rejected", context.at_ms
        ).model_copy(update={"receipt_hash": receipt.hex}),
        request=request.settled(command.submission_id, context.at_ms) if is_accepted else None,
        queue=state.queue("queued", available_at=context.at_ms) if is_accepted else None,
        interval=_closed(read, state, context.at_ms, command.elapsed_ms) if is_accepted else None,
    )
    told = _told(read, state, request) if is_accepted else []
    return Decided(
        drafts=(state.draft(event), *told),
        blobs=(value, receipt),
        receipt={**_receipt(request.request_id, command.submission_id), "receipt": document},
        outcome=Outcome.ACCEPTED if is_accepted else Outcome.REJECTED,
    )


def _require_acceptable(
    read: Read, state: RunState, request: Asked, revision: int | None, submission_id: str
) -> None:
    """Refuse a new candidate to a question that is not open to one."""
    if request.status == "settled":
        raise RevisionConflict(
            f"Request {request.request_id} was already answered.", code="alreadyAnswered"
        )
    require_in_time(read, request)
    require_open(state, request, revision)
    require_new_submission(read, submission_id)
    if validating(read, request.request_id) is not None:
        raise RevisionConflict(
            "Another submission is being checked.",
            code="submissionPending",
            hint="Wait for what becomes of it.",
        )


def _repeated(read: Read, known: Submission, submission_id: str, value: Blob | None) -> Decided:
    """Return what became of a candidate that was handed in before."""
    is_same = known.submission_id == submission_id and (
        value is None or known.payload_hash == value.digest
    )
    if not is_same:
        raise IdempotencyConflict(
            "The key names another submission of this request.",
            code="submissionReused",
            field="submissionId",
            hint="Give each answer an ID and a key of its own.",
        )
    receipt = _receipt(known.request_id, known.submission_id)
    if known.outcome == "rejected":
        assert known.receipt_hash is not None, "a refusal without its reason"
        receipt["receipt"] = canonical.decode(read.blob(known.receipt_hash))
        return Decided(receipt=receipt, outcome=Outcome.REJECTED)
    return Decided(receipt=receipt, outcome=Outcome.ADOPTED)


def _refused(
    command: JudgeSubmission, read: Read, state: RunState, request: Asked, at_ms: int
) -> Decided:
    """Return the refusal of a candidate; its request stays open for another one.

    A session whose turn ended meanwhile is reminded of its step, or the step ends.
    """
    assert command.error is not None, "a refusal says why"
    document: dict[str, Json] = {"error": command.error}
    receipt = Blob.json(document)
    drafts: tuple[Draft, ...]
    blobs: tuple[Blob, ...] = (receipt,)
    turn = unanswered(read, state, request)
    if turn is not None and turn.failure is not None:
        drafts, blobs = closed(read, state, request, turn.failure, at_ms, refusal=command.error)
    else:
        change = SubmissionChange(
            submission_id=command.submission_id, outcome="rejected", receipt_hash=receipt.hex
        )
        drafts = (state.draft(RequestValidated(run_id=state.run_id, submissions=(change,))),)
        if turn is not None:
            told, content = reminded(read, state, request, turn.turn_id, at_ms)
            drafts, blobs = (*drafts, told), (*blobs, content)
    return Decided(
        drafts=drafts,
        blobs=blobs,
        receipt={**_receipt(request.request_id, command.submission_id), "receipt": document},
        outcome=Outcome.REJECTED,
    )


def _row(
    command: SubmitCandidate | SubmitText,
    request: Asked,
    value: Blob,
    outcome: Literal["validating", "accepted", "rejected"],
    at_ms: int,
) -> SubmissionRow:
    """Return a candidate as it is stored."""
    return SubmissionRow(
        submission_id=command.submission_id,
        request_id=request.request_id,
        idempotency_key=command.idempotency_key,
        request_revision=request.revision,
        payload_hash=value.hex,
        outcome=outcome,
        receipt_hash=None,
        submitted_at=at_ms,
    )


def _closed(read: Read, state: RunState, at_ms: int, elapsed_ms: int) -> ClosedInterval | None:
    """Return the end of the interval in which the session worked on the step."""
    attempt = open_attempt(read, state.run_id)
    return attempt.closed(at_ms, elapsed_ms) if attempt is not None else None


def _told(read: Read, state: RunState, request: Asked) -> list[Draft]:
    """Return the end of what the session was still to be told of an answered step."""
    return messages.cancelled(
        read, state.run_id, kinds=frozenset({"step"}), source_id=request.request_id
    )


def _receipt(request_id: str, submission_id: str) -> dict[str, Json]:
    """Return what whoever submitted is told."""
    return {"requestId": request_id, "submissionId": submission_id}


def _chars_max(contract: bytes) -> int | None:
    """Return the longest text that a step takes; None when any will do."""
    document = canonical.decode(contract)
    limit = document.get("maxChars") if isinstance(document, dict) else None
    return limit if isinstance(limit, int) else None


def _text_error(text: str, chars_max: int | None) -> str | None:
    """Return why a turn's text is not the step's output; None when it is."""
    if not text.strip():
        return "The turn ended without visible text: answer in text."
    if chars_max is not None and len(text) > chars_max:
        return f"The text has {len(text):,} characters; at most {chars_max:,}: shorten it."
    return None


def _text_receipt(command: SubmitText, chars_max: int | None) -> dict[str, Json]:
    """Return the account of accepted text (engine contract, "Assistant-message receipt")."""
    receipt: dict[str, Json] = {
        "textDigest": f"sha256:{hashlib.sha256(command.text.encode()).hexdigest()}",
        "sessionEntryId": command.entry_id,
        "adopted": False,
    }
    if chars_max is not None:
        receipt["maxChars"] = chars_max
    return receipt
