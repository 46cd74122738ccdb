"""What a step is owed after a turn that ended without an answer to it (the engine contract)."""

from __future__ import annotations

from typing import NamedTuple

from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import REMINDERS_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Draft
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message import step
from pi_workflows.domain.message.state import SQL, is_known, open_turn
from pi_workflows.domain.request.closing import MISSING_SUBMISSION
from pi_workflows.domain.request.state import TOLD_AS_STEP, Asked
from pi_workflows.domain.run.state import RunState


class Unanswered(NamedTuple):
    """A turn that ended without an answer, and of which nobody was reminded.

    Attributes:
        turn_id: The turn.
        failure: Why its step ends; None while it is only reminded of.
    """

    turn_id: str
    failure: Failure | None


def unproductive_turns(read: Read, request_id: str) -> int:
    """Return how many turns ended while a request was open."""
    return read.one(int, SQL["unproductive_turns"], request_id=request_id) or 0


def given_up(turns: int) -> Failure | None:
    """Return why nobody is reminded any more after so many turns; None while somebody is."""
    if turns <= REMINDERS_MAX:
        return None
    return Failure(MISSING_SUBMISSION, f"{turns} turns of the session ended without an answer")


def reminded(
    read: Read, state: RunState, request: Asked, turn_id: str, at_ms: int
) -> tuple[Draft, Blob]:
    """Return the message that reminds a session of its step after a turn, and its text."""
    return step.told(
        read,
        step.Step(request.request_id, state.run_id, request.target_session_id, request.revision),
        read.blob(request.contract_hash),
        key=f"reminder:{turn_id}",
        at_ms=at_ms,
        reason="reminder",
        reminder_turn_id=turn_id,
    )


def unanswered(read: Read, state: RunState, request: Asked) -> Unanswered | None:
    """Return the turn that ended while an answer was judged, now that the answer is refused.

    Args:
        read: Reads of the deciding transaction.
        state: The run; not paused.
        request: The question, pending.

    Returns:
        The turn; None while somebody still works on the step or has to be told it.
    """
    if request.kind not in TOLD_AS_STEP or state.execution_mode != "interactive":
        return None
    turn_id = read.one(str, SQL["unproductive_turn"], request_id=request.request_id)
    if turn_id is None or open_turn(read, request.target_session_id) is not None:
        return None
    is_told = read.one(
        int, SQL["pending_of_source"], kind="step", source_id=request.request_id
    ) or is_known(read, "step", request.request_id, f"reminder:{turn_id}")
    if is_told:
        return None
    return Unanswered(turn_id, given_up(unproductive_turns(read, request.request_id)))
