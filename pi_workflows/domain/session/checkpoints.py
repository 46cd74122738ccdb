"""The states at each 256th event of a run's sessions, from which a replay goes on.

The client protocol, section 11. A state is a function of the journal up to its event, live and in a
rebuild.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.limits import SESSION_CHECKPOINT_EVENTS
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.session.journal import Checkpoint
from pi_workflows.domain.session.records import stored_members
from pi_workflows.domain.session.reducer import ReplayState, SessionEvent, fold

SQL: Final = load(__package__, "reads.sql")


class _Stored(NamedTuple):
    event_seq: int
    state_hash: bytes


def boundaries(before: int, after: int) -> range:
    """Return the boundaries that events cross.

    Args:
        before: The number of the last event before them, run-wide; 0 when there is none.
        after: The number of the last of them.
    """
    step = SESSION_CHECKPOINT_EVENTS
    return range((before // step + 1) * step, after + 1, step)


def crossed(read: Read, run_id: str, before: int, after: int) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of the boundaries that events of a run crossed.

    Args:
        read: Has the events, and the checkpoints up to them.
        run_id: The run.
        before: As `boundaries`.
        after: As `boundaries`.
    """
    found: list[Checkpoint] = []
    state: ReplayState | None = None
    for seq in boundaries(before, after):
        state = state_at(read, run_id, seq) if state is None else _folded(read, run_id, state, seq)
        state = state.reduced()
        found.append(Checkpoint(seq, state.blob()))
    return tuple(found)


def state_at(read: Read, run_id: str, seq: int) -> ReplayState:
    """Return the state of a run's sessions after an event.

    Args:
        read: One consistent read.
        run_id: The run.
        seq: The event's run-wide number; 0 is before the first.

    Returns:
        The fold from the greatest stored boundary that is not beyond it, over at most 255 events
        where each boundary has its checkpoint.
    """
    stored = read.one(_Stored, SQL["checkpoint"], run_id=run_id, seq=seq)
    state = ReplayState()
    if stored is not None:
        state = ReplayState.parse(read.blob(stored.state_hash))
    return _folded(read, run_id, state, seq)


def session_event(
    seq: int, event_type: str, message_id: str | None, tool_call_id: str | None, content: bytes
) -> SessionEvent:
    """Return a stored event as a fold takes it.

    Args:
        seq: Its run-wide number.
        event_type: Its kind.
        message_id: The message that it is about.
        tool_call_id: The tool call.
        content: Its stored payload.

    Raises:
        Corrupt: The payload is no JSON.
    """
    members = stored_members(content)
    return SessionEvent(seq, event_type, message_id, tool_call_id, members)


def _folded(read: Read, run_id: str, state: ReplayState, through: int) -> ReplayState:
    """Return a state after the events up to a number."""
    if state.through_seq >= through:
        return state
    after = state.through_seq
    events = read.all(session_event, SQL["folded"], run_id=run_id, after=after, through=through)
    return fold(state, events)
