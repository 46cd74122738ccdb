"""Receipts: the durable answer to a command, found again when the command is sent again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.errors import IdempotencyConflict
from pi_workflows.base.sql import SqlValue, load
from pi_workflows.store.content import read_blob
from pi_workflows.store.records import ClientKey, ClientReceipt, StoredReceipt, WorkerReceipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_workflows.store.cursors import Cursors

_SQL = load(__package__, "receipts.sql")
_CLIENT_RECEIPTS = _SQL["client_receipts"]
_INSERT_CLIENT_RECEIPT = _SQL["insert_client_receipt"]
_WORKER_RECEIPT = _SQL["worker_receipt"]
_INSERT_WORKER_RECEIPT = _SQL["insert_worker_receipt"]

# What a row's digest leaves out: itself, and the run that pruning forgets.
_UNDIGESTED: Final = frozenset({"row_digest", "run_id"})


class _Found(NamedTuple):
    fingerprint: bytes
    outcome: str
    accepted_revision: int | None
    receipt_hash: bytes | None
    error_hash: bytes | None


def receipt_digest(columns: Mapping[str, SqlValue]) -> bytes:
    """Return the digest of a row of `host_commands` or `worker_messages`.

    Args:
        columns: The row by the names of its columns; `row_digest` and `run_id` may be among them.

    Returns:
        SHA-256 over the canonical JSON of every other column, bytes as hex; 32 bytes.
    """
    members: dict[str, canonical.Json] = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in columns.items()
        if name not in _UNDIGESTED
    }
    return hashlib.sha256(canonical.encode(members)).digest()


def find_client_receipt(cursors: Cursors, key: ClientKey) -> StoredReceipt | None:
    """Look for an earlier answer to a client's request.

    Args:
        cursors: The open transaction.
        key: The request's identities and fingerprint.

    Returns:
        The earlier answer, or None when this request is new.

    Raises:
        IdempotencyConflict: The request ID or the client's key belongs to another request.
    """
    rows = cursors.rows(
        _CLIENT_RECEIPTS,
        {
            "request_id": key.request_id,
            "client_id": key.client_id,
            "idempotency_key": key.idempotency_key,
        },
    )
    if not rows:
        return None
    return _adopted(cursors, [_Found._make(row) for row in rows], key.fingerprint)


def put_client_receipt(cursors: Cursors, receipt: ClientReceipt) -> None:
    """Store the answer to a client's command, in the transaction of its effect."""
    row: dict[str, SqlValue] = {
        "request_id": receipt.key.request_id,
        "client_id": receipt.key.client_id,
        "operation": receipt.operation,
        "idempotency_key": receipt.key.idempotency_key,
        "request_fingerprint": receipt.key.fingerprint,
        "run_id": receipt.run_id,
        "accepted_revision": receipt.accepted_revision,
        "outcome": receipt.outcome,
        "receipt_hash": receipt.receipt_hash,
        "error_hash": receipt.error_hash,
        "host_epoch": receipt.host_epoch,
        "created_at": receipt.created_at_ms,
        "completed_at": receipt.completed_at_ms,
    }
    row["row_digest"] = receipt_digest(row)
    cursors.change(_INSERT_CLIENT_RECEIPT, row)


def find_worker_receipt(
    cursors: Cursors, worker_epoch: str, message_id: str, fingerprint: bytes
) -> StoredReceipt | None:
    """Look for an earlier answer to a runner's message.

    Args:
        cursors: The open transaction.
        worker_epoch: The runner process.
        message_id: Its number for the message.
        fingerprint: SHA-256 over the message's canonical JSON.

    Returns:
        The earlier answer, or None when this message is new.

    Raises:
        IdempotencyConflict: The message ID belongs to another message.
    """
    rows = cursors.rows(_WORKER_RECEIPT, {"worker_epoch": worker_epoch, "message_id": message_id})
    if not rows:
        return None
    return _adopted(cursors, [_Found._make(row) for row in rows], fingerprint)


def put_worker_receipt(cursors: Cursors, receipt: WorkerReceipt) -> None:
    """Store the answer to a runner's message, in the transaction of its effect."""
    row: dict[str, SqlValue] = {
        "worker_epoch": receipt.worker_epoch,
        "message_id": receipt.message_id,
        "request_fingerprint": receipt.fingerprint,
        "outcome": receipt.outcome,
        "accepted_revision": receipt.accepted_revision,
        "result_hash": receipt.result_hash,
        "error_hash": receipt.error_hash,
        "completed_at": receipt.completed_at_ms,
    }
    row["row_digest"] = receipt_digest(row)
    cursors.change(_INSERT_WORKER_RECEIPT, row)


def _adopted(cursors: Cursors, found: list[_Found], fingerprint: bytes) -> StoredReceipt:
    """Return the stored answer when every row that the request could mean is this request."""
    if any(row.fingerprint != fingerprint for row in found):
        raise IdempotencyConflict
    row = found[0]
    return StoredReceipt(
        outcome=row.outcome,
        accepted_revision=row.accepted_revision,
        receipt=None if row.receipt_hash is None else read_blob(cursors, row.receipt_hash),
        error=None if row.error_hash is None else read_blob(cursors, row.error_hash),
    )
