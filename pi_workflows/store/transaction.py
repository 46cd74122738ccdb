"""One transaction on a database, as the kernel sees it: all or nothing, command by command."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pi_workflows.store import content, leases, log, receipts
from pi_workflows.store.reading import Projecting, Reading

if TYPE_CHECKING:
    from collections.abc import Generator

    from pi_workflows.base.blob import Blob
    from pi_workflows.base.sql import SqlValue, Statement
    from pi_workflows.store.content import Documents
    from pi_workflows.store.cursors import Cursors
    from pi_workflows.store.records import (
        ClientKey,
        ClientReceipt,
        EventRecord,
        OwnedLease,
        Permit,
        StoredEvent,
        StoredReceipt,
        WorkerReceipt,
    )


class Transaction:
    """What may be done between BEGIN IMMEDIATE and COMMIT; `Store.transaction` gives one.

    Any method may raise Unavailable (`diskFull`, `storageFault`) or Corrupt besides what it names,
    and AssertionError when our own code did what it must not.

    Attributes:
        read: Reads for deciders.
        projection: Reads and writes for projectors.
    """

    __slots__ = ("_cursors", "projection", "read")

    def __init__(self, cursors: Cursors, documents: Documents) -> None:
        self._cursors = cursors
        self.read = Reading(cursors, documents)
        self.projection = Projecting(cursors)

    @property
    def lost(self) -> bool:
        """Whether SQLite ended the transaction by itself: nothing of it is left."""
        return self._cursors.lost is not None

    @contextmanager
    def savepoint(self) -> Generator[None]:
        """Make the body all or nothing inside the transaction.

        An exception undoes the body and goes on; without one the body joins the transaction, which
        commits it or not.

        Raises:
            AssertionError: A foreign key is left open that COMMIT would refuse for everyone.
        """
        cursors = self._cursors
        cursors.savepoint("SAVEPOINT command")
        try:
            yield
            assert not cursors.unresolved_keys(), "a foreign key is left open"
            # What fails to join the transaction is undone too: COMMIT would take it along.
            cursors.savepoint("RELEASE command")
        except BaseException:
            if not self.lost and cursors.connection.in_transaction:
                cursors.savepoint("ROLLBACK TO command")
                cursors.savepoint("RELEASE command")
            raise

    def put_blob(self, blob: Blob, now_ms: int) -> None:
        """Store content under its digest or adopt what is there, as `content.put_blob`."""
        content.put_blob(self._cursors, blob, now_ms)

    def append(self, event: EventRecord) -> int:
        """Append an event; return its number, as `log.append_event`."""
        return log.append_event(self._cursors, event)

    def restore(self, event: StoredEvent, blobs: tuple[bytes, ...]) -> None:
        """Insert an event as another database stores it, as `log.restore_event`; for rebuilds."""
        log.restore_event(self._cursors, event, blobs)

    def restore_blob(self, blob: Blob, created_at_ms: int) -> None:
        """Store content as another database stores it, as `content.restore_blob`; for rebuilds."""
        content.restore_blob(self._cursors, blob, created_at_ms)

    def payload(self, event_seq: int) -> bytes:
        """Return the payload of an event as it is stored."""
        return log.read_payload(self._cursors, event_seq)

    def checked_client_receipt(self, key: ClientKey) -> StoredReceipt | None:
        """Return the earlier answer to a client's request, as `receipts.find_client_receipt`."""
        return receipts.find_client_receipt(self._cursors, key)

    def put_client_receipt(self, receipt: ClientReceipt) -> None:
        """Store the answer to a client's command; its blobs are stored already."""
        receipts.put_client_receipt(self._cursors, receipt)

    def checked_worker_receipt(
        self, worker_epoch: str, message_id: str, fingerprint: bytes
    ) -> StoredReceipt | None:
        """Return the earlier answer to a runner's message, as `receipts.find_worker_receipt`."""
        return receipts.find_worker_receipt(self._cursors, worker_epoch, message_id, fingerprint)

    def put_worker_receipt(self, receipt: WorkerReceipt) -> None:
        """Store the answer to a runner's message; its blobs are stored already."""
        receipts.put_worker_receipt(self._cursors, receipt)

    def check_epoch(self, epoch: int) -> None:
        """Refuse to write for another server's epoch, as `leases.check_epoch`."""
        leases.check_epoch(self._cursors, epoch)

    def check_claim(
        self, permit: Permit | None, now_ms: int, *, resource_id: str | None = None
    ) -> None:
        """Refuse a write whose claim does not hold, as `leases.check_claim`."""
        leases.check_claim(self._cursors, permit, now_ms, resource_id)

    def renew_claim(self, permit: Permit, expires_at_ms: int, now_ms: int) -> None:
        """Move the end of a claim that holds, as `leases.renew_claim`."""
        leases.renew_claim(self._cursors, permit, expires_at_ms, now_ms)

    def take_claim(self, claim: OwnedLease) -> None:
        """Write the owner of a new claim, as `leases.take_claim`."""
        leases.take_claim(self._cursors, claim)

    def release_claim(self, resource_id: str, generation: int) -> bool:
        """Clear the owner of a claim, as `leases.release_claim`."""
        return leases.release_claim(self._cursors, resource_id, generation)

    def execute(self, statement: Statement, /, **values: SqlValue) -> int:
        """Run a write on process-local facts or journals; return how many rows it changed.

        The statements are the store's own (`volatile.py`): domain rows change in projectors only.
        """
        return self._cursors.change(statement, values)
