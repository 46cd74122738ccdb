"""What a Pi session and its model would do next for a run that waits for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import Statement
from pi_workflows.domain.fact import Command
from pi_workflows.domain.message.branch import ReportBranch
from pi_workflows.domain.message.recovery import StopRecovery
from pi_workflows.domain.message.state import TurnState, message_state, open_turn
from pi_workflows.domain.message.terminal import TellEnd
from pi_workflows.domain.message.turn import EndTurn, StartTurn
from pi_workflows.domain.request.closing import ExpireRequest
from pi_workflows.domain.request.state import validating
from pi_workflows.domain.request.submission import JudgeSubmission, SubmitCandidate, SubmitText
from pi_workflows.domain.run.state import (
    PendingRequest,
    RunState,
    open_attempt,
    pending_request,
    run_state,
)
from pi_workflows.domain.session_rows import TurnEnd
from pi_workflows.store.snapshot import Snapshot

Choose: TypeAlias = Callable[[Sequence[int]], int]
_ENDS: tuple[TurnEnd, ...] = ("aborted", "error", "completed", "completed")
_NEWEST = Statement(
    "newest",
    "SELECT workflow_message_id FROM workflow_messages WHERE source_id = :source_id"
    " AND status = :status ORDER BY order_number DESC LIMIT 1",
)
_TURN = Statement(
    "turn",
    "SELECT workflow_turn_id FROM workflow_turns WHERE workflow_message_id = :message_id LIMIT 1",
)
_UNTOLD = Statement(
    "untold",
    "SELECT workflow_message_id FROM workflow_messages WHERE run_id = :run_id"
    " AND status = 'pending' ORDER BY order_number LIMIT 1",
)


def session_move(read: Snapshot, run_id: str, key: str, choose: Choose) -> Command | None:
    """Return what a session does next about its run, its model or the server for it, or None.

    Args:
        read: The database.
        run_id: The run; it has ended, or asks a model.
        key: Names an entry, a turn or an answer.
        choose: As in `runner_move`; the last way leads on.
    """
    state = run_state(read, run_id)
    if state.is_terminal:
        return _after_end(read, state, key, choose)
    request = pending_request(read, run_id)
    if request is None or request.kind not in ("agent", "assistant") or state.paused:
        return None
    judged = validating(read, request.request_id)
    if judged is not None:
        if choose(range(3)) == 0:
            error = "it does not fit"
            return JudgeSubmission(run_id, request.request_id, judged.submission_id, error=error)
        value = Blob.of(read.blob(judged.payload_hash), "application/json")
        return JudgeSubmission(run_id, request.request_id, judged.submission_id, value)
    if state.execution_mode != "interactive":
        return _answer(state, request, key, choose)
    turn = open_turn(read, state.origin_session_id)
    if turn is not None and turn.run_id == run_id:
        return _working(read, state, request, turn=turn, key=key, choose=choose)
    untold = read.one(str, _UNTOLD, run_id=run_id)
    if untold is not None:
        return _idle(run_id, state.origin_session_id, untold, f"entry-{key}")
    told = read.one(str, _NEWEST, source_id=request.request_id, status="sent")
    if turn is not None or told is None:
        # The session still works on the end of another run.
        return _answer(state, request, key, choose)
    if choose(range(6)) == 0:
        return _idle(run_id, state.origin_session_id, told, None)
    return StartTurn(run_id, state.origin_session_id, told, f"turn-{key}")


def _idle(run_id: str, session: str, message_id: str | None, entry_id: str | None) -> ReportBranch:
    """Return what a session that does nothing says of its branch."""
    return ReportBranch(
        run_id, session, message_id, entry_id, is_idle=True, has_pending_messages=False
    )


def _working(
    read: Snapshot,
    state: RunState,
    request: PendingRequest,
    *,
    turn: TurnState,
    key: str,
    choose: Choose,
) -> Command:
    """Return what may happen while a model works on a step."""
    session = state.origin_session_id
    match choose(range(8)):
        case 0:
            return _idle(state.run_id, session, None, None)
        case 1:
            attempt = open_attempt(read, state.run_id)
            budget_ms = attempt.timeout_ms if attempt is not None else None
            return ExpireRequest(state.run_id, request.request_id, budget_ms or 0)
        case 2 | 3 | 4:
            return _ended(turn, choose)
        case _:
            return _answer(state, request, key, choose)


def _answer(state: RunState, request: PendingRequest, key: str, choose: Choose) -> Command:
    """Return an answer to a step, in the form that it asks for."""
    said = ("x" * 100, "", "done")[choose(range(3))]
    if request.kind == "assistant":
        return SubmitText(
            state.run_id,
            request.request_id,
            request.revision,
            f"submission-{key}",
            key,
            state.origin_session_id,
            said,
            f"said-{key}",
        )
    return SubmitCandidate(
        state.run_id,
        request.request_id,
        request.revision,
        f"submission-{key}",
        key,
        state.origin_session_id,
        Blob.json({"route": "a", "said": said}),
    )


def _ended(turn: TurnState, choose: Choose) -> EndTurn:
    """Return the end of a turn."""
    reason = _ENDS[choose(range(len(_ENDS)))]
    return EndTurn(
        turn.run_id,
        turn.target_session_id,
        turn.workflow_message_id,
        turn.workflow_turn_id,
        reason,
        f"said-{turn.workflow_turn_id}" if reason == "completed" else None,
        turn_ms=choose(range(3)) * 500,
    )


def _after_end(read: Snapshot, state: RunState, key: str, choose: Choose) -> Command | None:
    """Return what a session does about a run's end, until it was told and has worked on it."""
    session = state.origin_session_id
    if state.execution_mode != "interactive":
        return None
    known = read.one(str, _NEWEST, source_id=state.run_id, status="sent")
    untold = read.one(str, _UNTOLD, run_id=state.run_id)
    if untold is not None:
        return _idle(state.run_id, session, untold, f"entry-{key}")
    if known is None:
        return TellEnd(state.run_id)
    turn = open_turn(read, session)
    is_stopped = message_state(read, known).recovery_stop is not None
    if turn is not None and turn.run_id == state.run_id:
        if not is_stopped and choose(range(4)) == 0:
            return StopRecovery(state.run_id, known, "timed_out")
        return _ended(turn, choose)
    has_turn = read.one(str, _TURN, message_id=known) is not None
    if turn is not None or has_turn or is_stopped:
        return None
    return StartTurn(state.run_id, session, known, f"turn-{key}")
