"""The turns of a session's model for its messages: who owns one, and what its end means.

The client protocol, "Session, branch, turns"; the engine contract, "Reminders".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    IdempotencyConflict,
    Outcome,
    RevisionConflict,
    TransitionDenied,
)
from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.events import CloseCause, IntervalClosed, IntervalOpened
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.message.events import TurnStarted
from pi_workflows.domain.message.reminder import given_up, reminded, unproductive_turns
from pi_workflows.domain.message.state import (
    SQL,
    MessageState,
    TurnState,
    message_state,
    open_turn,
)
from pi_workflows.domain.request.closing import closed, spent
from pi_workflows.domain.request.state import Asked, asked, validating
from pi_workflows.domain.rows import IntervalRow
from pi_workflows.domain.run.control import paused
from pi_workflows.domain.run.state import (
    OpenAttempt,
    RunState,
    open_attempt,
    pending_request,
    run_state,
)
from pi_workflows.domain.session_rows import MessageChange, TurnEnd, TurnRow

Ownership: TypeAlias = Literal["active", "settled", "absent"]
_REPORTED: tuple[TurnEnd, ...] = ("completed", "aborted", "error")


@dataclass(frozen=True, slots=True)
class StartTurn(Command):
    """The session's model began to work for a message.

    Attributes:
        session_id: The session.
        message_id: The message.
        turn_id: The turn's own identity.
    """

    session_id: str
    message_id: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class EndTurn(Command):
    """The turn is over.

    Attributes:
        session_id: The session.
        message_id: The message that it worked for.
        turn_id: The turn.
        stop_reason: How it ended.
        response_entry_id: The entry with what the model said, if it said something.
        turn_ms: The turn's active time.
        elapsed_ms: Active time of the attempt's open interval.
    """

    session_id: str
    message_id: str
    turn_id: str
    stop_reason: TurnEnd
    response_entry_id: str | None = None
    turn_ms: int = 0
    elapsed_ms: int = 0


@dataclass(frozen=True, slots=True)
class SuspendClock(Command):
    """The session works on its step no more, though its turn is not over.

    Attributes:
        attempt_id: The step's attempt.
        elapsed_ms: Active time of its open interval.
        cause: What happened.
    """

    attempt_id: str
    elapsed_ms: int
    cause: CloseCause


@dataclass(frozen=True, slots=True)
class ResumeClock(Command):
    """The session of an open turn is back: its step's time runs again.

    Attributes:
        turn_id: The turn.
    """

    turn_id: str


def start_turn(command: StartTurn, context: Context, read: Read) -> Decided:
    """Decide who owns a turn that began.

    Raises:
        NotFound: There is no such message.
        IdempotencyConflict: `turnReused`, the ID names another turn.
        TransitionDenied: `messageKind`: it opens no turn; `messageNotSent`: no branch holds it.
        RevisionConflict: `turnOpen`, the session has another turn.
    """
    message = _own_message(read, command)
    known = _known_turn(read, command)
    if known is not None:
        return _adopted("active" if known.state == "started" else "settled", known)
    if message.kind in ("decision", "notification"):
        raise TransitionDenied(f"A {message.kind} opens no turn.", code="messageKind")
    if _is_closed(read, message):
        return _adopted("absent", None)
    if message.status != "sent":
        raise TransitionDenied(
            f"Message {message.workflow_message_id} is in no branch.",
            code="messageNotSent",
            hint="Report the branch that holds it first.",
        )
    if open_turn(read, command.session_id) is not None:
        raise RevisionConflict("The session has another open turn.", code="turnOpen")
    turn = TurnState(
        command.turn_id,
        command.message_id,
        command.run_id,
        command.session_id,
        "started",
        None,
        None,
        0,
        context.at_ms,
        None,
    )
    drafts = [message.draft(TurnStarted(turn=_row(turn)))]
    if message.kind == "step":
        drafts.extend(_clock_started(read, run_state(read, command.run_id), context.at_ms))
    return Decided(drafts=tuple(drafts), receipt=_receipt("active", turn))


def end_turn(command: EndTurn, context: Context, read: Read) -> Decided:
    """Decide what the end of a turn means: a pause, a reminder, a step without an answer.

    Raises:
        NotFound: There is no such message.
        IdempotencyConflict: `turnReused`, the turn ended otherwise, or the ID names another one.
    """
    message = _own_message(read, command)
    known = _known_turn(read, command)
    if known is None:
        return _adopted("absent", None)
    if known.state == "ended":
        return _ended_before(command, known)
    draft = known.ended(
        command.stop_reason,
        context.at_ms,
        response_entry_id=command.response_entry_id,
        elapsed_ms=command.turn_ms,
        message=_interrupted(message) if command.stop_reason == "aborted" else None,
    )
    effect = _meaning(command, context, read, message)
    settled = known._replace(
        state="ended",
        stop_reason=command.stop_reason,
        response_session_entry_id=command.response_entry_id,
        ended_at=context.at_ms,
    )
    return Decided(
        drafts=(draft, *effect.drafts),
        blobs=effect.blobs,
        receipt=_receipt("settled", settled),
    )


def _interrupted(message: MessageState) -> MessageChange | None:
    """Return that nothing follows from a run's end of which nobody wants to hear any more."""
    if message.kind != "terminal" or message.recovery_stop is not None:
        return None
    return message.change(stop="interrupted")


class _Meaning(NamedTuple):
    """What a turn's end changes beside the turn."""

    drafts: tuple[Draft, ...] = ()
    blobs: tuple[Blob, ...] = ()


def _meaning(command: EndTurn, context: Context, read: Read, message: MessageState) -> _Meaning:
    """Return what follows from the end of a turn."""
    if message.kind != "step":
        return _Meaning()
    state = run_state(read, message.run_id)
    request = asked(read, message.run_id, message.source_id)
    attempt = open_attempt(read, state.run_id)
    if request.status != "pending" or attempt is None or state.is_terminal:
        return _Meaning()
    if command.stop_reason == "aborted" and not state.paused:
        pause = paused(read, state, context.at_ms, elapsed_ms=command.elapsed_ms)
        return _Meaning(pause.drafts, pause.blobs)
    is_unproductive = command.stop_reason in _REPORTED and not state.paused
    is_open = validating(read, request.request_id) is None
    # A step that was told again meanwhile is no longer the turn's.
    is_told = read.one(int, SQL["pending_of_source"], kind="step", source_id=request.request_id)
    if is_unproductive and is_open and not is_told:
        return _unanswered(command, context, read, state=state, request=request)
    return _Meaning(tuple(_stopped(state, attempt, context.at_ms, command.elapsed_ms)))


def _unanswered(
    command: EndTurn, context: Context, read: Read, *, state: RunState, request: Asked
) -> _Meaning:
    """Return a reminder, or after two of them the end of a step that nobody answers."""
    failure = given_up(unproductive_turns(read, request.request_id) + 1)
    if failure is not None:
        return _Meaning(
            *closed(read, state, request, failure, context.at_ms, elapsed_ms=command.elapsed_ms)
        )
    attempt = open_attempt(read, state.run_id)
    assert attempt is not None, "a request without its attempt"
    reminder, content = reminded(read, state, request, command.turn_id, context.at_ms)
    stopped = _stopped(state, attempt, context.at_ms, command.elapsed_ms)
    return _Meaning((*stopped, reminder), (content,))


def suspend_clock(command: SuspendClock, context: Context, read: Read) -> Decided:
    """Decide that a step's time stands; where it does already there is nothing to do.

    Raises:
        NotFound: There is no such run.
    """
    state = run_state(read, command.run_id)
    attempt = open_attempt(read, command.run_id)
    if attempt is None or attempt.attempt_id != command.attempt_id:
        return Decided(outcome=Outcome.ADOPTED)
    # What a lost server measured last is all that is known.
    at_ms = None if command.cause == "serverLost" else context.at_ms
    interval = attempt.closed(at_ms, command.elapsed_ms)
    if interval is None or attempt.status != "waiting":
        return Decided(outcome=Outcome.ADOPTED)
    event = IntervalClosed(run_id=state.run_id, interval=interval, cause=command.cause)
    return Decided(drafts=(state.draft(event),))


def resume_clock(command: ResumeClock, context: Context, read: Read) -> Decided:
    """Decide that a step's time runs again: its turn is open and its run is not paused.

    Raises:
        NotFound: There is no such run.
    """
    state = run_state(read, command.run_id)
    turn = read.one(TurnState, SQL["turn"], workflow_turn_id=command.turn_id)
    if turn is None or turn.state != "started":
        return Decided(outcome=Outcome.ADOPTED)
    message = message_state(read, turn.workflow_message_id)
    if message.kind != "step" or _is_closed(read, message):
        return Decided(outcome=Outcome.ADOPTED)
    drafts = _clock_started(read, state, context.at_ms)
    return Decided(drafts=tuple(drafts)) if drafts else Decided(outcome=Outcome.ADOPTED)


def _own_message(read: Read, command: StartTurn | EndTurn) -> MessageState:
    """Return the reported message. Raises NotFound, or TransitionDenied `messageTarget`."""
    message = message_state(read, command.message_id)
    if message.target_session_id != command.session_id or message.run_id != command.run_id:
        raise TransitionDenied(
            f"Message {command.message_id} is another session's or run's.", code="messageTarget"
        )
    return message


def _known_turn(read: Read, command: StartTurn | EndTurn) -> TurnState | None:
    """Return the reported turn. Raises IdempotencyConflict when the ID names another one."""
    known = read.one(TurnState, SQL["turn"], workflow_turn_id=command.turn_id)
    if known is None:
        return None
    if known.workflow_message_id != command.message_id:
        raise IdempotencyConflict(
            f"Turn {command.turn_id} belongs to another message.",
            code="turnReused",
            field="workflowTurnId",
        )
    return known


def _is_closed(read: Read, message: MessageState) -> bool:
    """Whether a message asks for no work any more (the client protocol, "A start for …")."""
    if message.status == "cancelled" or message.recovery_stop is not None:
        return True
    if message.kind != "step":
        return False
    if message.run_paused:
        return True
    request = pending_request(read, message.run_id)
    return request is None or request.request_id != message.source_id


def _ended_before(command: EndTurn, known: TurnState) -> Decided:
    """Adopt an end that was reported before, or one that came too late."""
    is_same = (
        known.stop_reason == command.stop_reason
        and known.response_session_entry_id == command.response_entry_id
    )
    if not is_same and known.stop_reason != "lost":
        raise IdempotencyConflict(
            f"Turn {command.turn_id} ended otherwise.", code="turnReused", field="workflowTurnId"
        )
    return _adopted("settled", known)


def _clock_started(read: Read, state: RunState, at_ms: int) -> list[Draft]:
    """Return the beginning of an active interval of the step that a turn works on."""
    attempt = open_attempt(read, state.run_id)
    is_waiting = attempt is not None and attempt.status == "waiting"
    if attempt is None or not is_waiting or state.paused or attempt.interval_number is not None:
        return []
    event = IntervalOpened(
        run_id=state.run_id,
        opened=IntervalRow(
            attempt_id=attempt.attempt_id,
            interval_number=spent(read, attempt.attempt_id).interval_number + 1,
            started_at=at_ms,
            observed_at=at_ms,
            ended_at=None,
            elapsed_ms=0,
        ),
    )
    return [state.draft(event)]


def end_of_clock(read: Read, message: MessageState, at_ms: int, elapsed_ms: int) -> list[Draft]:
    """Return the end of the active interval of a message's step, if one is open.

    Args:
        read: Reads of the deciding transaction.
        message: The message of the turn that ended.
        at_ms: When it is decided.
        elapsed_ms: The interval's active time beyond its last sample.

    Returns:
        The run's event; nothing for a message that is no step's.
    """
    attempt = open_attempt(read, message.run_id) if message.kind == "step" else None
    if attempt is None or attempt.status != "waiting":
        return []
    return _stopped(run_state(read, message.run_id), attempt, at_ms, elapsed_ms)


def _stopped(state: RunState, attempt: OpenAttempt, at_ms: int, elapsed_ms: int) -> list[Draft]:
    """Return the end of the active interval of a step whose turn is over."""
    interval = attempt.closed(at_ms, elapsed_ms)
    if interval is None:
        return []
    event = IntervalClosed(run_id=state.run_id, interval=interval, cause="turnEnded")
    return [state.draft(event)]


def _row(turn: TurnState) -> TurnRow:
    """Return a turn that starts as it is stored."""
    return TurnRow(
        workflow_turn_id=turn.workflow_turn_id,
        workflow_message_id=turn.workflow_message_id,
        run_id=turn.run_id,
        target_session_id=turn.target_session_id,
        state="started",
        stop_reason=None,
        response_session_entry_id=None,
        active_elapsed_ms=0,
        started_at=turn.started_at,
        ended_at=None,
    )


def _receipt(ownership: Ownership, turn: TurnState | None) -> dict[str, Json]:
    """Return what whoever reported is told."""
    return {"ownership": ownership, "turn": None if turn is None else turn_document(turn)}


def _adopted(ownership: Ownership, turn: TurnState | None) -> Decided:
    """Return a report that changes nothing."""
    return Decided(receipt=_receipt(ownership, turn), outcome=Outcome.ADOPTED)


def turn_document(turn: TurnState) -> dict[str, Json]:
    """Return `pi-workflows.workflow-turn.v1`."""
    return {
        "schema": "pi-workflows.workflow-turn.v1",
        "workflowTurnId": turn.workflow_turn_id,
        "workflowMessageId": turn.workflow_message_id,
        "runId": turn.run_id,
        "targetSessionId": turn.target_session_id,
        "state": turn.state,
        "stopReason": turn.stop_reason,
        "responseSessionEntryId": turn.response_session_entry_id,
        "startedAt": turn.started_at,
        "endedAt": turn.ended_at,
    }
