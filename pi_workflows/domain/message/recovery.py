"""What a run's end may set off by itself: a bounded chain of launches, and what stops it.

The engine contract, "Recovery chain".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pi_workflows.base.errors import LimitExceeded, Outcome, RevisionConflict, TransitionDenied
from pi_workflows.base.limits import RECOVERY_LAUNCHES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.message.events import MessageRecoveryStopped
from pi_workflows.domain.message.state import SQL, MessageState, message_state, open_turn
from pi_workflows.domain.session_rows import RecoveryStop


@dataclass(frozen=True, slots=True)
class StopRecovery(Command):
    """Nothing more may be launched by itself from a run's end.

    Attributes:
        message_id: The message that told it.
        stop: Why.
    """

    message_id: str
    stop: RecoveryStop


class Handoff(NamedTuple):
    """What a launch from a run's end is bound to.

    Attributes:
        message_id: The message that told the end.
        root_run_id: The first run of the chain.
        known_run_id: The run that was launched from this end before; None when none was.
    """

    message_id: str
    root_run_id: str
    known_run_id: str | None


class _Chain(NamedTuple):
    root_run_id: str
    launches: int


def stop_recovery(command: StopRecovery, context: Context, read: Read) -> Decided:
    """Decide that a handoff is over; one that was stopped before keeps its first reason.

    Raises:
        NotFound: There is no such message.
        TransitionDenied: `messageKind`, it tells no end.
    """
    message = message_state(read, command.message_id)
    if message.kind != "terminal":
        raise TransitionDenied("The message tells no run's end.", code="messageKind")
    if message.recovery_stop is not None:
        return Decided(outcome=Outcome.ADOPTED)
    return Decided(drafts=(message.draft(stopped(message, command.stop)),))


def stopped(message: MessageState, stop: RecoveryStop) -> MessageRecoveryStopped:
    """Return the fact that nothing more may be launched from a message."""
    return MessageRecoveryStopped(run_id=message.run_id, message=message.change(stop=stop))


def open_handoff(read: Read, run_id: str) -> MessageState | None:
    """Return the message about a run's end whose turn is open; None when there is none."""
    found = read.one(str, SQL["open_handoff"], run_id=run_id)
    return message_state(read, found) if found is not None else None


def handoff(read: Read, message_id: str, session_id: str) -> Handoff:
    """Return what a launch from a run's end is bound to.

    Args:
        read: Reads of the deciding transaction.
        message_id: The message that told the end.
        session_id: The session that launches.

    Returns:
        The handoff. When a run was launched from it before, that one is to be adopted.

    Raises:
        NotFound: There is no such message.
        TransitionDenied: `messageKind`, `messageTarget`, or `recoveryStopped`.
        RevisionConflict: `turnNotOpen`, the session does not work for that message now.
        LimitExceeded: `recoveryLimit`, the chain has launched all that it may.
    """
    message = message_state(read, message_id)
    if message.kind != "terminal":
        raise TransitionDenied("The message tells no run's end.", code="messageKind")
    if message.target_session_id != session_id:
        raise TransitionDenied("The message is another session's.", code="messageTarget")
    chain = read.one(_Chain, SQL["chain"], run_id=message.run_id)
    assert chain is not None, "a message without its run"
    known = read.one(str, SQL["launched_run"], workflow_message_id=message_id)
    if known is not None:
        return Handoff(message_id, chain.root_run_id, known)
    if message.recovery_stop is not None:
        raise TransitionDenied(
            f"Nothing may be launched from this end any more ({message.recovery_stop}).",
            code="recoveryStopped",
            hint="Ask the person; their own request starts anew.",
        )
    turn = open_turn(read, session_id)
    if turn is None or turn.workflow_message_id != message_id:
        raise RevisionConflict(
            "The session does not work for that message now.", code="turnNotOpen"
        )
    if chain.launches >= RECOVERY_LAUNCHES_MAX:
        raise LimitExceeded(
            f"{chain.launches} runs were launched by themselves after"
            f" {chain.root_run_id}, which is the limit.",
            code="recoveryLimit",
            hint="Ask the person; their own request starts anew.",
        )
    return Handoff(message_id, chain.root_run_id, None)
