"""One order, one savepoint.

Decide, append each event, project it, advance the view, store the receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    LimitExceeded,
    NotFound,
    Outcome,
    Refused,
    RevisionConflict,
)
from pi_workflows.base.limits import EVENT_PAYLOAD_BYTES_MAX, RECEIPT_BYTES_MAX
from pi_workflows.base.sql import load
from pi_workflows.domain.deciders import decide
from pi_workflows.domain.events import decode, named_blobs
from pi_workflows.domain.fact import Command, Context, Decided, Draft, Event, Stored, ViewRef
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.session.journal import Flush
from pi_workflows.kernel.flush import Stamped, append_flush
from pi_workflows.kernel.order import Answer, ClientIdentity, Order, WorkerIdentity
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.store.records import (
    ClientReceipt,
    EventRecord,
    OwnedLease,
    StoredReceipt,
    WorkerReceipt,
)
from pi_workflows.store.transaction import Transaction

SQL: Final = load(__package__, "dispatch.sql")

_HEADER: Final = {"v", "command", "resource", "lease", "view"}
_STORED_REFUSALS: Final = frozenset({Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Host:
    """The server that decides.

    Attributes:
        host_id: Its identity as an owner of claims.
        epoch: The epoch it took.
    """

    host_id: str
    epoch: int


def adopted(tx: Transaction, order: Order) -> Answer | None:
    """Return the stored receipt of an order that was already done.

    Args:
        tx: The group's transaction.
        order: The order.

    Returns:
        The answer that it got then, an accepted one as `adopted`; None when it is new.

    Raises:
        IdempotencyConflict: The identity was used for something else.
    """
    match order.identity:
        case ClientIdentity(key=key):
            stored = tx.checked_client_receipt(key)
            return _stored_answer(stored) if stored is not None else None
        case WorkerIdentity() as worker:
            stored = tx.checked_worker_receipt(
                worker.worker_epoch, worker.message_id, worker.fingerprint
            )
            return _stored_result(stored) if stored is not None else None
        case None:
            return None


def _stored_result(stored: StoredReceipt) -> Answer:
    """Return a runner's receipt as its repeated proposal is answered."""
    outcome = Outcome(stored.outcome)
    if stored.error is not None:
        failure = Failure.parse(stored.error)
        return Answer(outcome, error=failure.message, code=failure.code)
    return Answer(
        outcome=Outcome.ADOPTED if outcome is Outcome.ACCEPTED else outcome,
        revision=stored.accepted_revision,
        values=canonical.decode(stored.receipt) if stored.receipt else None,
    )


def _stored_answer(stored: StoredReceipt) -> Answer:
    """Return a client's receipt as its repeated request is answered."""
    outcome = Outcome(stored.outcome)
    code: Json = None
    receipt = canonical.decode(stored.receipt) if stored.receipt else None
    if outcome is Outcome.ACCEPTED:
        outcome = Outcome.ADOPTED
    elif isinstance(receipt, dict):
        code = receipt.get("code")
    return Answer(
        outcome=outcome,
        revision=stored.accepted_revision,
        receipt=stored.receipt,
        error=stored.error.decode() if stored.error else None,
        code=code if isinstance(code, str) else None,
    )


def execute(
    tx: Transaction, order: Order, host: Host, projectors: Projectors, now_ms: int
) -> tuple[Answer, Command | None]:
    """Run an order that is new, inside the caller's savepoint.

    Args:
        tx: The group's transaction.
        order: The order.
        host: The deciding server.
        projectors: Where events become rows.
        now_ms: The one wall time that the order is judged by.

    Returns:
        The answer, and the command that has to follow in the same group.

    Raises:
        Refused: Nothing may remain of it: the caller rolls its savepoint back.
        Unavailable: The store failed.
        AssertionError: Our bug.
    """
    tx.check_epoch(host.epoch)
    _check_revision(tx, order)
    if order.permit is not None:
        run = ids.resource_id("run", order.commands[0].run_id)
        tx.check_claim(order.permit, now_ms, resource_id=run)
        tx.renew_claim(order.permit, order.renew_until_ms, now_ms)
    context = Context(
        at_ms=now_ms,
        actor=order.actor,
        command_id=order.command_id,
        host_id=host.host_id,
    )
    execution = _Execution(tx, order, context, projectors)
    for command in order.commands:
        execution.apply(decide(command, context, tx.read))
    answer = execution.answer()
    _store_receipt(tx, order, answer, host, now_ms)
    return answer, execution.follow_up


def _check_revision(tx: Transaction, order: Order) -> None:
    """Refuse an order whose run moved on since its sender read it."""
    if order.expected_revision is None:
        return
    run_id = order.commands[0].run_id
    revision = tx.read.one(int, SQL["revision"], resource_id=ids.resource_id("run", run_id))
    if revision is None:
        raise NotFound(f"There is no run {run_id}.", code="runMissing", field="runId")
    if revision != order.expected_revision:
        raise RevisionConflict(
            f"Run {run_id} is at revision {revision}, not {order.expected_revision}.",
            field="expectedRevision",
        )


@dataclass(slots=True)
class _Execution:
    """One order on its way: what its commands decided is appended and projected step by step."""

    tx: Transaction
    order: Order
    context: Context
    projectors: Projectors
    events: list[Stored] = field(default_factory=list[Stored])
    flushes: list[Flush] = field(default_factory=list[Flush])
    views: dict[str, int] = field(default_factory=dict[str, int])
    revisions: dict[str, int] = field(default_factory=dict[str, int])
    receipt: dict[str, Json] = field(default_factory=dict[str, Json])
    values: Json = None
    outcome: Outcome = Outcome.ACCEPTED
    follow_up: Command | None = None
    refusal: Refused | None = None

    def apply(self, decided: Decided) -> None:
        """Append and project what one command decided."""
        for blob in decided.blobs:
            self.tx.put_blob(blob, self.context.at_ms)
        for draft in decided.drafts:
            self.events.append(self._append(draft))
        if decided.flush is not None:
            self._flush(decided.flush)
        self.receipt.update(decided.receipt)
        if decided.values is not None:
            self.values = dict(decided.values)
        if decided.outcome is not Outcome.ACCEPTED:
            self.outcome = decided.outcome
        self.follow_up = decided.follow_up or self.follow_up
        self.refusal = decided.refusal or self.refusal

    def answer(self) -> Answer:
        """Advance the view of each run that changed, once over all its events, and answer."""
        for run_id, revision in self.views.items():
            view = ViewRef(run_id=run_id, revision=revision)
            shown = tuple(event for event in self.events if event.fact.view == view)
            flush = Flush.joined(each for each in self.flushes if each.run_id == run_id)
            assert not (shown and flush), f"{self.order.name}: events and a flush in one order"
            self.projectors.apply_view(view, shown, flush, self.context.at_ms, self.tx.projection)
        if self.refusal is not None:
            assert len(self.order.commands) == 1, f"{self.order.name}: a refusal among others"
            refused = _refused(self.refusal, self.receipt)
            return replace(refused, events=tuple(self.events), views=self.views)
        return Answer(
            outcome=self.outcome,
            revision=self._revision(),
            receipt=canonical.encode(self.receipt),
            values=self.values,
            events=tuple(self.events),
            views=self.views,
        )

    def _flush(self, flush: Flush) -> None:
        """Append rows to the session journals."""
        view = ViewRef(run_id=flush.run_id, revision=self._view(flush.run_id))
        stamped = Stamped(flush, view, self.context.at_ms)
        append_flush(self.tx, stamped, self.projectors)
        self.flushes.append(flush)

    def _append(self, draft: Draft) -> Stored:
        """Append one event and project what its stored bytes say."""
        tx, at_ms, actor = self.tx, self.context.at_ms, self.context.actor
        resource_id = ids.resource_id(draft.resource_type, draft.key)
        before = self._resource_revision(resource_id)
        revision = 1 if before is None else before + 1
        document = self._document(draft, is_new=before is None)
        payload = Blob.json(document)
        if len(payload.content) > EVENT_PAYLOAD_BYTES_MAX:
            raise LimitExceeded(
                f"The event {draft.event.type} is over {EVENT_PAYLOAD_BYTES_MAX} bytes.",
                code="eventTooLarge",
            )
        lease = draft.event.lease
        is_claim = lease is not None and lease.op == "claimed"
        event = Stored(
            resource_id=resource_id,
            revision=revision,
            actor_type=actor.type,
            actor_id=actor.id,
            lease_generation=self._generation(resource_id, draft.event),
            at_ms=at_ms,
            fact=decode(draft.event.type, payload.content),
        )
        self.projectors.raise_revision(event, tx.projection)
        tx.append(
            EventRecord(
                event_id=ids.event_id(resource_id, revision),
                resource_id=resource_id,
                resource_revision=revision,
                event_type=draft.event.type,
                actor_type=event.actor_type,
                actor_id=event.actor_id,
                lease_generation=event.lease_generation,
                payload=payload.content,
                payload_hash=payload.digest,
                recorded_at_ms=at_ms,
                blobs=named_blobs(payload.content),
            )
        )
        self.revisions[resource_id] = revision
        self.projectors.apply_event(event, tx.projection)
        if lease is not None and is_claim:
            self._take_claim(resource_id, lease.generation)
        return event

    def _generation(self, resource_id: str, event: Event) -> int | None:
        """Return the generation of the resource's own claim under which an event was written."""
        if event.lease is not None:
            return event.lease.generation
        permit = self.order.permit
        return permit.generation if permit and permit.resource_id == resource_id else None

    def _document(self, draft: Draft, *, is_new: bool) -> dict[str, Json]:
        """Return an event's payload: absent parts are left out, null columns of a row stay."""
        dumped: dict[str, Json] = draft.event.model_dump(mode="json", exclude=_HEADER)
        document: dict[str, Json] = {
            name: value for name, value in dumped.items() if value is not None
        }
        document["v"] = 1
        document["command"] = {"id": self.order.command_id, "name": self.order.name}
        lease = draft.event.lease
        if lease is not None:
            document["lease"] = {
                "op": lease.op,
                "generation": lease.generation,
                "owner_type": lease.owner_type,
            }
        if is_new:
            document["resource"] = {"type": draft.resource_type, "key": draft.key}
        if draft.run_id is not None:
            document["view"] = {"run_id": draft.run_id, "revision": self._view(draft.run_id)}
        return document

    def _view(self, run_id: str) -> int:
        """Return the presentation revision that this order gives a run."""
        known = self.views.get(run_id)
        if known is not None:
            return known
        before = self.tx.read.one(int, SQL["presentation_revision"], run_id=run_id)
        revision = 1 if before is None else before + 1
        self.views[run_id] = revision
        return revision

    def _take_claim(self, resource_id: str, generation: int) -> None:
        """Write who owns the claim that an event just made.

        It is process-local, so never part of the event.
        """
        claimant = self.order.claimant
        assert claimant is not None, f"{self.order.name} makes a claim for nobody"
        self.tx.take_claim(
            OwnedLease(
                resource_id=resource_id,
                owner_type="host",
                owner_id=claimant.owner_id,
                token=claimant.token,
                generation=generation,
                acquired_at_ms=self.context.at_ms,
                expires_at_ms=claimant.expires_at_ms,
            )
        )

    def _revision(self) -> int | None:
        """Return the revision that the caller is told.

        A runner's is its run's; everybody else's is that of the resource of the first event, or of
        the run that an adopted command made before.
        """
        named = self.receipt.get("runId")
        run_id = named if isinstance(named, str) else self.order.commands[0].run_id
        resource_id = ids.resource_id("run", run_id)
        if self.events and not isinstance(self.order.identity, WorkerIdentity):
            resource_id = self.events[0].resource_id
        return self._resource_revision(resource_id)

    def _resource_revision(self, resource_id: str) -> int | None:
        """Return the revision that a resource has by now, None when there is none."""
        known = self.revisions.get(resource_id)
        if known is not None:
            return known
        return self.tx.read.one(int, SQL["revision"], resource_id=resource_id)


def refuse(tx: Transaction, order: Order, refusal: Refused, host: Host, now_ms: int) -> Answer:
    """Answer an order that the domain refused, and remember the refusal where it is final.

    Args:
        tx: The group's transaction; the order's savepoint has been rolled back.
        order: The order.
        refusal: Why.
        host: The deciding server.
        now_ms: The wall time that it was judged by.

    Returns:
        The answer.
    """
    answer = _refused(refusal, {})
    is_lost = isinstance(order.identity, WorkerIdentity) and isinstance(refusal, RevisionConflict)
    if refusal.outcome in _STORED_REFUSALS and not is_lost:
        # A runner whose run moved on has lost its claim, which is no refusal by the domain.
        _store_receipt(tx, order, answer, host, now_ms)
    return answer


def _refused(refusal: Refused, receipt: Mapping[str, Json]) -> Answer:
    """Return a refusal as its sender is told of it, beside what else there is to tell."""
    details: dict[str, Json] = {**receipt, "code": refusal.reason_code}
    if refusal.field is not None:
        details["field"] = refusal.field
    if refusal.hint is not None:
        details["hint"] = refusal.hint
    return Answer(
        outcome=refusal.outcome,
        receipt=canonical.encode(details),
        error=refusal.message,
        code=refusal.reason_code,
    )


def _store_receipt(tx: Transaction, order: Order, answer: Answer, host: Host, now_ms: int) -> None:
    """Store the receipt of an order that has an identity, in the transaction that did its work."""
    match order.identity:
        case ClientIdentity() as client:
            _store_client_receipt(tx, order.run_id, client, answer, host=host, now_ms=now_ms)
        case WorkerIdentity() as worker:
            _store_worker_receipt(tx, worker, answer, now_ms)
        case None:
            return


def _store_client_receipt(
    tx: Transaction,
    run_id: str | None,
    client: ClientIdentity,
    answer: Answer,
    *,
    host: Host,
    now_ms: int,
) -> None:
    """Store what a client is told."""
    receipt = Blob.of(answer.receipt or b"{}", "application/json")
    if len(receipt.content) > RECEIPT_BYTES_MAX:
        raise LimitExceeded("The receipt is too large.", code="receiptTooLarge")
    tx.put_blob(receipt, now_ms)
    error = Blob.text(answer.error) if answer.error is not None else None
    if error is not None:
        tx.put_blob(error, now_ms)
    if run_id is not None and tx.read.one(int, SQL["run_exists"], run_id=run_id) is None:
        run_id = None
    tx.put_client_receipt(
        ClientReceipt(
            key=client.key,
            operation=client.operation,
            run_id=run_id,
            accepted_revision=answer.revision,
            outcome=answer.outcome.value,
            receipt_hash=receipt.digest,
            error_hash=error.digest if error else None,
            host_epoch=host.epoch,
            created_at_ms=now_ms,
            completed_at_ms=now_ms,
        )
    )


def _store_worker_receipt(
    tx: Transaction, worker: WorkerIdentity, answer: Answer, now_ms: int
) -> None:
    """Store what a runner is told: its values, or the code and the message of a refusal."""
    result = Blob.json(answer.values) if answer.values is not None else None
    error = None
    if answer.error is not None:
        error = Failure(answer.code or "refused", answer.error).blob()
    for blob in (result, error):
        if blob is not None:
            tx.put_blob(blob, now_ms)
    outcome = Outcome.REJECTED if error is not None else answer.outcome
    tx.put_worker_receipt(
        WorkerReceipt(
            worker_epoch=worker.worker_epoch,
            message_id=worker.message_id,
            fingerprint=worker.fingerprint,
            outcome=outcome.value,
            accepted_revision=answer.revision,
            result_hash=result.digest if result else None,
            error_hash=error.digest if error else None,
            completed_at_ms=now_ms,
        )
    )
