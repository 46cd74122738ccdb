"""Prompts are queued while a run goes on, and may be taken back until they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    AuthorityDenied,
    IdempotencyConflict,
    LimitExceeded,
    NotFound,
    Outcome,
    TransitionDenied,
)
from pi_workflows.base.limits import FOLLOW_UPS_QUEUED_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.follow_up.events import FollowUpQueued
from pi_workflows.domain.follow_up.state import KIND, SQL, FollowUp
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.rows import FollowUpRow
from pi_workflows.domain.run.state import live_run, run_state

# Where it came in. Every other way ends at the server's socket.
_SOURCE = "client"


@dataclass(frozen=True, slots=True)
class QueueFollowUp(Command):
    """Let a prompt follow a run that completes.

    Attributes:
        request_id: The request's own identity.
        prompt: The text.
    """

    request_id: str
    prompt: Blob


@dataclass(frozen=True, slots=True)
class RemoveFollowUp(Command):
    """Take a prompt back.

    Attributes:
        follow_up_id: Which.
    """

    follow_up_id: str


class _Queued(NamedTuple):
    """A follow-up that the same request queued before."""

    follow_up_id: str
    order_number: int
    prompt_hash: bytes


def queue_follow_up(command: QueueFollowUp, context: Context, read: Read) -> Decided:
    """Decide to queue a prompt with its message, the last in the run's order.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: `runTerminal`, or `runHeadless`: no session would be told.
        LimitExceeded: `followUpsTooMany`.
        IdempotencyConflict: `requestReused`: the request queued another prompt.
    """
    known = read.one(
        _Queued, SQL["of_request"], run_id=command.run_id, request_id=command.request_id
    )
    if known is not None:
        return _adopted(command, known)
    state = live_run(read, command.run_id)
    if state.execution_mode != "interactive":
        raise TransitionDenied(
            f"Run {state.run_id} belongs to no session that could go on after it.",
            code="runHeadless",
            hint="A follow-up needs a run that was started from a Pi session.",
        )
    waiting = read.all(FollowUp, SQL["waiting_of_run"], run_id=state.run_id)
    if len(waiting) >= FOLLOW_UPS_QUEUED_MAX:
        raise LimitExceeded(
            f"At most {FOLLOW_UPS_QUEUED_MAX} follow-ups wait for one run.",
            code="followUpsTooMany",
        )
    order = (read.one(int, SQL["newest_order"], run_id=state.run_id) or 0) + 1
    follow_up_id = ids.follow_up_id(state.run_id, command.request_id)
    row = FollowUpRow(
        follow_up_id=follow_up_id,
        resource_id=ids.resource_id("follow_up", follow_up_id),
        run_id=state.run_id,
        request_id=command.request_id,
        order_number=order,
        target_session_id=state.origin_session_id,
        source_type=_SOURCE,
        prompt_hash=command.prompt.hex,
        status="queued",
        reason_hash=None,
        created_at=context.at_ms,
        updated_at=context.at_ms,
    )
    message = messages.created(
        read,
        run_id=state.run_id,
        session_id=state.origin_session_id,
        kind=KIND,
        source_id=follow_up_id,
        key=follow_up_id,
        content=command.prompt,
        at_ms=context.at_ms,
    )
    queued = Draft("follow_up", follow_up_id, FollowUpQueued(follow_up=row), state.run_id)
    return Decided(
        drafts=(queued, message),
        blobs=(command.prompt,),
        receipt=_receipt(state.run_id, follow_up_id, order),
    )


def _adopted(command: QueueFollowUp, known: _Queued) -> Decided:
    """Adopt what this very request queued before."""
    if known.prompt_hash != command.prompt.digest:
        raise IdempotencyConflict(
            "The request queued another prompt.", code="requestReused", field="idempotencyKey"
        )
    return Decided(
        receipt=_receipt(command.run_id, known.follow_up_id, known.order_number),
        outcome=Outcome.ADOPTED,
    )


def _receipt(run_id: str, follow_up_id: str, order: int) -> dict[str, Json]:
    """Return what the caller of a queueing is told."""
    return {"runId": run_id, "followUpId": follow_up_id, "order": order, "state": "queued"}


def remove_follow_up(command: RemoveFollowUp, context: Context, read: Read) -> Decided:
    """Decide to take a prompt back: a person any, everybody else what their class queued.

    Raises:
        NotFound: There is no such run or follow-up.
        AuthorityDenied: `followUpForeign`.
        TransitionDenied: `followUpSent`, `followUpCancelled`.
    """
    run_state(read, command.run_id)
    found = read.one(FollowUp, SQL["follow_up"], follow_up_id=command.follow_up_id)
    if found is None or found.run_id != command.run_id:
        raise NotFound(
            f"Run {command.run_id} has no follow-up {command.follow_up_id!r:.80}.",
            code="followUpMissing",
            field="followUpId",
        )
    if context.actor.type not in ("human", found.actor_type):
        raise AuthorityDenied(
            f"A {context.actor.type} request takes back only what one queued.",
            code="followUpForeign",
        )
    receipt: dict[str, Json] = {
        "runId": found.run_id,
        "followUpId": found.follow_up_id,
        "state": "removed",
    }
    if found.status == "removed":
        return Decided(receipt=receipt, outcome=Outcome.ADOPTED)
    if found.status == "cancelled":
        raise TransitionDenied("The follow-up was cancelled.", code="followUpCancelled")
    if found.is_sent:
        raise TransitionDenied("The follow-up was sent.", code="followUpSent")
    reason = Blob.text(f"removed ({context.actor.type})")
    cancelled = messages.cancelled(read, found.run_id, kinds={KIND}, source_id=found.follow_up_id)
    return Decided(drafts=(found.removed(reason), *cancelled), blobs=(reason,), receipt=receipt)
