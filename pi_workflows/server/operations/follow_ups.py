"""Prompts that wait for a run's end."""

from __future__ import annotations

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.domain.follow_up.queue import QueueFollowUp, RemoveFollowUp
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.settings import FollowUpQueue, FollowUpRemove
from pi_workflows.server.operations.call import Call, known, replied
from pi_workflows.server.services import Services


async def queue(services: Services, call: Call) -> Reply:
    """Queue a prompt for the run's session.

    Args:
        services: The server.
        call: `followUp.queue`.

    Returns:
        The receipt, or the domain's refusal.

    Raises:
        PayloadInvalid: The prompt is blank.
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(FollowUpQueue)
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    if not payload.prompt.strip():
        raise PayloadInvalid("prompt: say what to do", code="promptBlank", field="prompt")
    command = QueueFollowUp(
        run_id=call.run_id,
        request_id=ids.client_request_id(call.request.client_id, call.request.idempotency_key),
        prompt=Blob.text(payload.prompt),
    )
    order = call.order(command, size_bytes=len(command.prompt.content))
    return replied(await services.writer.submit(order))


async def remove(services: Services, call: Call) -> Reply:
    """Take a prompt back.

    Args:
        services: The server.
        call: `followUp.remove`.

    Returns:
        The receipt, or the domain's refusal.

    Raises:
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    command = RemoveFollowUp(call.run_id, call.read(FollowUpRemove).follow_up_id)
    return replied(await services.writer.submit(call.order(command)))
