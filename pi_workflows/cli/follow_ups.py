"""`follow-up`: prompts that wait for the end of a session's run."""

from __future__ import annotations

from pi_workflows.base.canonical import Json
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.controlling import receipt_document
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.values import json_or_text
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.settings import FollowUpQueued, FollowUpRemoved


def queue_follow_up(invocation: Invocation, typed: str, text: str) -> int:
    """Queue a prompt. Returns the exit code; raises as `ask`, or WrongUsage for a file."""
    prompt = json_or_text(text, field="TEXT", is_text=True)
    reply = _asked(invocation, Operation.FOLLOW_UP_QUEUE, typed, {"prompt": prompt})
    if reply is None:
        return 0
    queued = FollowUpQueued.parse(reply.receipt)
    invocation.output.line(queued.follow_up_id)
    invocation.output.note(f"Number {queued.order} to follow {queued.run_id}.")
    return 0


def remove_follow_up(invocation: Invocation, typed: str, follow_up_id: str) -> int:
    """Take a prompt back. Returns the exit code; raises as `ask`."""
    reply = _asked(invocation, Operation.FOLLOW_UP_REMOVE, typed, {"followUpId": follow_up_id})
    if reply is not None:
        removed = FollowUpRemoved.parse(reply.receipt)
        invocation.output.line(f"{removed.follow_up_id} does not follow any more.")
    return 0


def _asked(
    invocation: Invocation, operation: Operation, typed: str, payload: dict[str, Json]
) -> Reply | None:
    """Ask for something about a run; None when its receipt is written already."""
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        reply = ask(server, operation, payload, run_id=run_id, key=invocation.key)
    if invocation.is_json:
        invocation.output.document(receipt_document(operation, reply))
        return None
    return reply
