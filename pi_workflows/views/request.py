"""A question that a run asks, as those see it who may answer."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import CARRIED_BYTES_MAX, INLINE_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.display import RequestKind
from pi_workflows.domain.rows import RequestStatus
from pi_workflows.views.value import Value, embedded

SQL: Final = load(__package__, "request.sql")


class RequestRow(NamedTuple):
    """A question with its contract."""

    request_id: str
    run_id: str
    attempt_id: str
    node_path: str
    target_session_id: str
    kind: RequestKind
    revision: int
    status: RequestStatus
    accepted_submission_id: str | None
    created_at: int
    updated_at: int
    settled_at: int | None
    consumed_at: int | None
    contract_hash: bytes
    contract_media: str
    contract_bytes: int
    contract_content: bytes | None

    @property
    def contract(self) -> Value | None:
        """What is asked, and of what form the answer has to be."""
        return Value.of(
            self.contract_hash, self.contract_media, self.contract_bytes, self.contract_content
        )


def request_row(read: Read, request_id: str) -> RequestRow:
    """Return a question. Raises NotFound (`requestMissing`) when there is none of that name."""
    row = read.one(
        RequestRow, SQL["request"], request_id=request_id, carried_bytes=CARRIED_BYTES_MAX
    )
    if row is None:
        raise NotFound(
            f"There is no request {request_id}.", code="requestMissing", field="requestId"
        )
    return row


def interaction(read: Read, request_id: str, bytes_max: int = INLINE_BYTES_MAX) -> dict[str, Json]:
    """Return a question as a document (the client protocol, "Session view", `interaction`).

    Args:
        read: The view's read.
        request_id: The question.
        bytes_max: Bytes of the contract; a larger one is a reference to its content.

    Returns:
        Its identity and revision, which an answer has to name, its kind, its node and its contract.

    Raises:
        NotFound: There is no such question.
    """
    row = request_row(read, request_id)
    return {
        "requestId": row.request_id,
        "runId": row.run_id,
        "attemptId": row.attempt_id,
        "nodeId": row.node_path,
        "targetSessionId": row.target_session_id,
        "kind": row.kind,
        "contract": embedded(read, row.contract, bytes_max),
        "revision": row.revision,
        "status": row.status,
        "acceptedSubmissionId": row.accepted_submission_id,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "settledAt": row.settled_at,
        "consumedAt": row.consumed_at,
    }
