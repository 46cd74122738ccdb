"""When a follow-up's turn has come, and what a run's end does to those that wait."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.fact import ActorType, Draft
from pi_workflows.domain.follow_up.events import FollowUpCancelled, FollowUpEnded, FollowUpRemoved
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.message.state import MessageState
from pi_workflows.domain.rows import FollowUpChange, FollowUpStatus, RunStatus
from pi_workflows.domain.session_rows import MessageKind

SQL: Final = load(__package__, "reads.sql")
KIND: Final[MessageKind] = "followUp"


class FollowUp(NamedTuple):
    """One follow-up."""

    follow_up_id: str
    run_id: str
    actor_type: ActorType
    status: FollowUpStatus
    is_sent: int

    def draft(self, event: FollowUpEnded) -> Draft:
        """Return an event of this follow-up's own resource."""
        return Draft("follow_up", self.follow_up_id, event, self.run_id)

    def removed(self, reason: Blob) -> Draft:
        """Return that somebody took it back; the caller keeps the reason under `blobs`."""
        change = FollowUpChange(
            follow_up_id=self.follow_up_id, status="removed", reason_hash=reason.hex
        )
        return self.draft(FollowUpRemoved(run_id=self.run_id, follow_up=change))

    def cancelled(self, reason: Blob) -> Draft:
        """Return that its run did not complete; the caller keeps the reason under `blobs`."""
        change = FollowUpChange(
            follow_up_id=self.follow_up_id, status="cancelled", reason_hash=reason.hex
        )
        return self.draft(FollowUpCancelled(run_id=self.run_id, follow_up=change))


class Closed(NamedTuple):
    """What the end of a run does to its follow-ups.

    Attributes:
        drafts: Their events, and those of their messages.
        blobs: The values that these name.
    """

    drafts: tuple[Draft, ...] = ()
    blobs: tuple[Blob, ...] = ()


def closed_by_end(read: Read, run_id: str, ending: RunStatus) -> Closed:
    """Return what a run's end does to the follow-ups that wait for it.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        ending: How it ends.

    Returns:
        Nothing for a run that completes: their turns come. Else every one of them cancelled, with
        its message.
    """
    waiting = read.all(FollowUp, SQL["waiting_of_run"], run_id=run_id)
    if ending == "completed" or not waiting:
        return Closed()
    reason = Blob.text(f"the run ended: {ending}")
    ended = (follow_up.cancelled(reason) for follow_up in waiting)
    return Closed((*ended, *messages.cancelled(read, run_id, kinds={KIND})), (reason,))


def eligible(read: Read, message: MessageState) -> bool:
    """Whether the turn of a follow-up's message has come (engine contract, section 4).

    Args:
        read: One consistent read.
        message: A message of kind `followUp`.

    Returns:
        True when its run completed and its session was told so in a turn that succeeded, the
        follow-ups before it are settled or gone, and no run has the session.
    """
    return read.one(int, SQL["eligible"], follow_up_id=message.source_id) is not None
