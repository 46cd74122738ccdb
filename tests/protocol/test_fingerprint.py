"""The fingerprint: what makes two requests the same."""

from __future__ import annotations

from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.envelope import Request
from pi_workflows.protocol.fingerprint import request_fingerprint
from pi_workflows.protocol.operations import Operation

_ANSWER: Final[dict[str, Json]] = {
    "requestId": "request-of-the-run",
    "submissionId": "s",
    "input": {"b": 1, "a": [1.5, None]},
}
_REQUEST: Final = Request(
    request_id="request-1",
    client_id="cli-1",
    operation=Operation.CHECKPOINT_ANSWER,
    idempotency_key="key-1",
    payload={**_ANSWER, "targetSessionId": "session-1", "coordinatorEpoch": 3},
    run_id="build-1",
    expected_revision=7,
)


def test_the_fingerprint_is_a_contract(snapshot: SnapshotAssertion) -> None:
    """Stored receipts are found by it, so it may not change."""
    assert request_fingerprint(_REQUEST).hex() == snapshot


def test_a_resend_is_the_same_request() -> None:
    """Neither a new request ID nor the epoch of a new connection makes another request."""
    resent = _REQUEST.model_copy(
        update={
            "request_id": "request-2",
            "payload": {**_ANSWER, "targetSessionId": "session-1", "coordinatorEpoch": 4},
        }
    )
    assert request_fingerprint(resent) == request_fingerprint(_REQUEST)


def test_the_order_of_members_does_not_matter() -> None:
    """Equal values have equal fingerprints, however they were built."""
    payload = dict(reversed({**_ANSWER, "targetSessionId": "session-1"}.items()))
    resent = _REQUEST.model_copy(update={"payload": payload})
    assert request_fingerprint(resent) == request_fingerprint(_REQUEST)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("client_id", "cli-2"),
        ("operation", Operation.RUN_RESTART),
        ("idempotency_key", "key-2"),
        ("payload", {**_ANSWER, "targetSessionId": "session-2"}),
        ("payload", {**_ANSWER, "targetSessionId": "session-1", "input": {"a": [1.5, None]}}),
        ("payload", dict(_ANSWER)),
        ("run_id", "build-2"),
        ("run_id", None),
        ("expected_revision", 8),
        ("expected_revision", None),
    ],
)
def test_anything_else_makes_another_request(member: str, value: object) -> None:
    """Client, operation, key, payload, run and expected revision each tell requests apart."""
    other = _REQUEST.model_copy(update={member: value})
    assert request_fingerprint(other) != request_fingerprint(_REQUEST)


def test_only_a_session_operation_has_an_epoch() -> None:
    """Elsewhere a member of that name is an unknown one, and part of what was asked."""
    cancel = _REQUEST.model_copy(
        update={"operation": Operation.RUN_CANCEL, "payload": {"coordinatorEpoch": 3}}
    )
    other = cancel.model_copy(update={"payload": {}})
    assert request_fingerprint(cancel) != request_fingerprint(other)
