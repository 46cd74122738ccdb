"""One request on its way through the server, and what every operation needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.kernel.order import Answer, Chore, ClientIdentity, Order
from pi_workflows.protocol.envelope import Request, Response
from pi_workflows.protocol.fingerprint import request_fingerprint
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.wire import Payload, WireModel, error_line
from pi_workflows.server.authority import Speaker
from pi_workflows.server.coordinators import SessionClaim
from pi_workflows.server.services import Services
from pi_workflows.server.session import Session
from pi_workflows.server.writer import Writer
from pi_workflows.store.records import ClientKey, ClientReceipt, StoredReceipt
from pi_workflows.store.transaction import Transaction

P = TypeVar("P", bound=Payload)


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose authority and payload were checked.

    Attributes:
        request: As it came.
        payload: Its payload, read.
        speaker: Who asks.
        claim: The session in whose name it is made, with its epoch; None for every other request.
        actor: As whom it is remembered.
        session: The connection that it came on.
    """

    request: Request
    payload: Payload
    speaker: Speaker
    claim: SessionClaim | None
    actor: Actor
    session: Session

    @property
    def run_id(self) -> str:
        """The run that the operation is about or makes; only for operations that have one."""
        assert self.request.run_id is not None, f"{self.request.operation} without a run"
        return self.request.run_id

    def read(self, kind: type[P]) -> P:
        """Return the payload as its operation's model."""
        assert isinstance(self.payload, kind), f"{self.request.operation} with another payload"
        return self.payload

    def order(self, *commands: Command, expects_run: bool = False, size_bytes: int = 0) -> Order:
        """Return the order that does these commands for this request.

        Args:
            commands: In order.
            expects_run: The envelope's `expectedRevision` is the run's.
            size_bytes: Bytes of the values that they carry, for the group's bound.

        Raises:
            AuthorityDenied: `notCoordinator`: the session has another coordinator since the request
                came. The order is to be handed over at once: one that was handed over before is
                committed before the other one hears of its epoch.
        """
        if self.claim is not None:
            self.session.coordinators.require(self.claim, self.session.connection_id)
        return Order(
            name=self.request.operation.value,
            commands=commands,
            actor=self.actor,
            command_id=ids.random_id("command"),
            expected_revision=self.request.expected_revision if expects_run else None,
            identity=identity(self.request),
            run_id=self.request.run_id,
            size_bytes=size_bytes,
        )


def identity(request: Request) -> ClientIdentity:
    """Return the names under which a request is remembered."""
    key = ClientKey(
        request_id=request.request_id,
        client_id=request.client_id,
        idempotency_key=request.idempotency_key,
        fingerprint=request_fingerprint(request),
    )
    return ClientIdentity(key, request.operation.value)


async def known(writer: Writer, request: Request) -> Reply | None:
    """Look for the receipt of an earlier request of the same identity.

    Args:
        writer: The writer; the look comes behind everything that waits there.
        request: The request.

    Returns:
        The earlier answer, an accepted one as `adopted`; None when the request is new.

    Raises:
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    key = identity(request).key
    found: list[StoredReceipt | None] = []
    await writer.submit(Chore(lambda tx: found.append(tx.checked_client_receipt(key))))
    # A group that lost its transaction ran its pieces again; the last look counts.
    return _adopted(found[-1])


async def remember(services: Services, request: Request, receipt: Json) -> Reply:
    """Store the receipt of a command that changed nothing in the database.

    Args:
        services: The server.
        request: The command.
        receipt: What it came to.

    Returns:
        The reply; when another request of the same identity came first, that one's receipt.

    Raises:
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    who = identity(request)
    content = Blob.json(receipt)
    found: list[StoredReceipt | None] = []

    def store(tx: Transaction) -> None:
        found.append(tx.checked_client_receipt(who.key))
        if found[-1] is not None:
            return
        now_ms = services.clock.now_ms()
        tx.put_blob(content, now_ms)
        tx.put_client_receipt(
            ClientReceipt(
                key=who.key,
                operation=who.operation,
                run_id=None,
                accepted_revision=None,
                outcome=Outcome.ACCEPTED.value,
                receipt_hash=content.digest,
                error_hash=None,
                host_epoch=services.epoch,
                created_at_ms=now_ms,
                completed_at_ms=now_ms,
            )
        )

    await services.writer.submit(Chore(store, size_bytes=len(content.content)))
    return _adopted(found[-1]) or Reply(Outcome.ACCEPTED, None, receipt)


def _adopted(found: StoredReceipt | None) -> Reply | None:
    """Return an earlier answer as it is given again."""
    if found is None:
        return None
    outcome = Outcome(found.outcome)
    return Reply(
        outcome=Outcome.ADOPTED if outcome is Outcome.ACCEPTED else outcome,
        revision=found.accepted_revision,
        receipt=canonical.fragment(found.receipt) if found.receipt is not None else None,
        error=found.error.decode() if found.error is not None else None,
    )


def replied(answer: Answer) -> Reply:
    """Return what the client is told of a command's answer."""
    return Reply(
        outcome=answer.outcome,
        revision=answer.revision,
        receipt=canonical.fragment(answer.receipt) if answer.receipt is not None else None,
        error=answer.error,
    )


def shown(document: WireModel | Json, *, revision: int | None = None) -> Reply:
    """Return the reply of a read: the document, at a revision when it has one."""
    receipt = document.document() if isinstance(document, WireModel) else document
    return Reply(Outcome.ACCEPTED, revision, receipt)


def response(request: Request, reply: Reply) -> Response:
    """Return a reply as the message that carries it."""
    line = error_line(reply.error) if reply.error else None
    return Response(
        request_id=request.request_id,
        outcome=reply.outcome,
        revision=reply.revision,
        receipt=reply.receipt,
        error=line or None,
    )
