"""A command that is sent again gets its first answer; another command under its name gets none."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import IdempotencyConflict
from pi_workflows.base.sql import Statement
from pi_workflows.store.receipts import receipt_digest
from pi_workflows.store.records import ClientKey, ClientReceipt, StoredReceipt, WorkerReceipt
from tests.store.bench import BODY, NOW_MS, add_run, sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_workflows.base.sql import SqlValue
    from pi_workflows.store.database import Store
    from pi_workflows.store.transaction import Transaction

KEY = ClientKey("request-1", "client-1", "key-1", sha256(b"what was asked"))
OTHER = sha256(b"something else")
ERROR = Blob.json({"code": "runTerminal"})

CLIENT_ROW = Statement("client_row", "SELECT * FROM host_commands")
WORKER_ROW = Statement("worker_row", "SELECT * FROM worker_messages")
COLUMNS = Statement("columns", "SELECT name FROM pragma_table_info(:name) ORDER BY cid")
WORKER = """
INSERT INTO run_workers (
    worker_epoch, run_id, generation, host_epoch, launch_envelope_hash, launch_step_total, status,
    started_at
) VALUES ('worker-1', 'r', 1, 1, :blob_hash, 0, 'starting', 0)
"""


def receipt(key: ClientKey = KEY, outcome: str = "accepted") -> ClientReceipt:
    """Return an answer whose content is stored."""
    refused = outcome != "accepted"
    return ClientReceipt(
        key=key,
        operation="run.start",
        run_id=None,
        accepted_revision=None if refused else 4,
        outcome=outcome,
        receipt_hash=BODY.digest,
        error_hash=ERROR.digest if refused else None,
        host_epoch=1,
        created_at_ms=NOW_MS,
        completed_at_ms=NOW_MS + 1,
    )


def answer(store: Store, stored: ClientReceipt) -> None:
    """Commit an answer."""
    with store.transaction() as transaction:
        transaction.put_blob(BODY, NOW_MS)
        transaction.put_blob(ERROR, NOW_MS)
        transaction.put_client_receipt(stored)


def ask(store: Store, key: ClientKey) -> StoredReceipt | None:
    """Look for an earlier answer."""
    with store.transaction() as transaction:
        return transaction.checked_client_receipt(key)


def test_a_new_request_has_no_answer(store: Store) -> None:
    """A request that was never answered is new."""
    assert ask(store, KEY) is None


@pytest.mark.parametrize(
    "key",
    [KEY, replace(KEY, request_id="request-2")],
    ids=["the same sending", "a resend under another number"],
)
def test_a_resend_gets_the_first_answer(store: Store, key: ClientKey) -> None:
    """The same request ID, or the client's same key, finds the stored answer with its content."""
    answer(store, receipt())
    assert ask(store, key) == StoredReceipt("accepted", 4, BODY.content, None)


@pytest.mark.parametrize("outcome", ["rejected", "conflict", "notFound"])
def test_a_refusal_is_an_answer_too(store: Store, outcome: str) -> None:
    """A stored refusal is given again as it is."""
    answer(store, receipt(outcome=outcome))
    assert ask(store, KEY) == StoredReceipt(outcome, None, BODY.content, ERROR.content)


@pytest.mark.parametrize(
    "key",
    [
        replace(KEY, fingerprint=OTHER),
        replace(KEY, request_id="request-2", fingerprint=OTHER),
        replace(KEY, client_id="client-2", idempotency_key="key-2", fingerprint=OTHER),
    ],
    ids=["same everything", "same key", "same request ID of another client"],
)
def test_a_used_name_is_a_conflict(store: Store, key: ClientKey) -> None:
    """Another request under a used request ID or key is refused, and nothing is stored of it."""
    answer(store, receipt())
    with pytest.raises(IdempotencyConflict) as caught:
        ask(store, key)
    assert caught.value.reason_code == "requestReused"
    assert ask(store, KEY) is not None


def test_two_requests_are_not_mixed(store: Store) -> None:
    """A request ID of one answered request with the key of another one is a conflict."""
    second = ClientKey("request-2", "client-1", "key-2", OTHER)
    answer(store, receipt())
    answer(store, receipt(second))
    with pytest.raises(IdempotencyConflict):
        ask(store, replace(KEY, idempotency_key="key-2"))
    with pytest.raises(IdempotencyConflict):
        ask(store, replace(second, request_id="request-1"))


def test_clients_do_not_share_keys(store: Store) -> None:
    """Another client's equal key is another request."""
    answer(store, receipt())
    assert ask(store, ClientKey("request-2", "client-2", "key-1", OTHER)) is None


def row_of(store: Store, table: str, statement: Statement) -> dict[str, SqlValue]:
    """Return the one row of a table by the names of its columns."""
    with store.snapshot() as snapshot:
        names = snapshot.all(str, COLUMNS, name=table)
        row = snapshot.one(_values, statement)
    assert row is not None
    return dict(zip(names, row, strict=True))


def _values(*values: SqlValue) -> Sequence[SqlValue]:
    return values


def test_a_client_receipt_carries_its_digest(store: Store) -> None:
    """The digest covers every column but the run, which pruning forgets."""
    answer(store, receipt())
    row = row_of(store, "host_commands", CLIENT_ROW)
    expected = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in row.items()
        if name not in {"row_digest", "run_id"}
    }
    assert row["row_digest"] == hashlib.sha256(canonical.encode({**expected})).digest()
    assert row["row_digest"] == receipt_digest({**row, "run_id": "forgotten"})
    for name in expected:
        assert receipt_digest({**row, name: "changed"}) != row["row_digest"]


def start_worker(transaction: Transaction) -> None:
    """Insert a runner process with all that it needs."""
    add_run(transaction)
    transaction.projection.write(Statement("worker", WORKER), blob_hash=BODY.digest)


def test_a_runner_message_is_answered_once(store: Store) -> None:
    """A runner's message that comes again gets its first answer; another one is a conflict."""
    fingerprint = sha256(b"message")
    stored = WorkerReceipt(
        worker_epoch="worker-1",
        message_id="message-1",
        fingerprint=fingerprint,
        outcome="accepted",
        accepted_revision=9,
        result_hash=BODY.digest,
        error_hash=None,
        completed_at_ms=NOW_MS,
    )
    with store.transaction() as transaction:
        start_worker(transaction)
        assert transaction.checked_worker_receipt("worker-1", "message-1", fingerprint) is None
        transaction.put_worker_receipt(stored)
    with store.transaction() as transaction:
        found = transaction.checked_worker_receipt("worker-1", "message-1", fingerprint)
        assert found == StoredReceipt("accepted", 9, BODY.content, None)
        assert transaction.checked_worker_receipt("worker-1", "message-2", OTHER) is None
        with pytest.raises(IdempotencyConflict):
            transaction.checked_worker_receipt("worker-1", "message-1", OTHER)
    row = row_of(store, "worker_messages", WORKER_ROW)
    assert row["row_digest"] == receipt_digest(row)
    assert receipt_digest({**row, "outcome": "rejected"}) != row["row_digest"]


def test_a_receipt_goes_with_its_transaction(store: Store) -> None:
    """An answer whose effect is undone is undone with it: the resend is new."""
    with suppress(KeyError), store.transaction() as transaction:
        transaction.put_blob(BODY, NOW_MS)
        transaction.put_client_receipt(receipt())
        raise KeyError
    assert ask(store, KEY) is None
