"""The fingerprint of a request: two requests with the same one ask for the same thing."""

from __future__ import annotations

import hashlib
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import FRAME_DEPTH_MAX
from pi_workflows.protocol.envelope import Request
from pi_workflows.protocol.operations import OPERATIONS

_EPOCH: Final = "coordinatorEpoch"


def request_fingerprint(request: Request) -> bytes:
    """Return the SHA-256 of what a request asks for.

    The client protocol, "Receipts and idempotency".

    Args:
        request: The request as it was read.

    Returns:
        32 bytes over the canonical JSON of client, operation, run, expected revision, key and
        payload. The request ID is left out, as a resend has a new one; so is a session operation's
        coordinator epoch: reconnecting changes the evidence of authority, not the request.
    """
    facts: dict[str, Json] = {
        "clientId": request.client_id,
        "idempotencyKey": request.idempotency_key,
        "operation": request.operation.value,
        "payload": _without_epoch(request),
    }
    if request.run_id is not None:
        facts["runId"] = request.run_id
    if request.expected_revision is not None:
        facts["expectedRevision"] = request.expected_revision
    return hashlib.sha256(canonical.encode(facts, depth_max=FRAME_DEPTH_MAX)).digest()


def _without_epoch(request: Request) -> Json:
    """Return the payload, of a session operation without its coordinator epoch."""
    payload: Json = request.payload
    if not OPERATIONS[request.operation].is_session or not isinstance(payload, dict):
        return payload
    return {name: member for name, member in payload.items() if name != _EPOCH}
