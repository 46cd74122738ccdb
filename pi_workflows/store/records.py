"""What goes into the journals and comes back: plain rows, with the names of their columns.

Digests and hashes are raw bytes (32), times integer milliseconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event on its way into the log; the log gives it its number and its digest.

    Attributes:
        event_id: Unique in the database.
        resource_id: The aggregate that the event belongs to; its row exists already.
        resource_revision: The revision that the event raised the aggregate to, from 1.
        event_type: Its name in the catalogue, such as `run.queued`.
        actor_type: Who caused it, as a class.
        actor_id: Who caused it, private.
        lease_generation: Under which claim it was written, when under one.
        payload: Canonical JSON.
        payload_hash: SHA-256 of the payload.
        recorded_at_ms: The command's one wall time.
        blobs: Digests of the blobs that the payload names; each is stored already.
    """

    event_id: str
    resource_id: str
    resource_revision: int
    event_type: str
    actor_type: str
    actor_id: str | None
    lease_generation: int | None
    payload: bytes
    payload_hash: bytes
    recorded_at_ms: int
    blobs: tuple[bytes, ...] = ()


class StoredEvent(NamedTuple):
    """One row of the log with the bytes of its payload."""

    event_seq: int
    event_id: str
    resource_id: str
    resource_revision: int
    event_type: str
    actor_type: str
    actor_id: str | None
    lease_generation: int | None
    payload_hash: bytes
    event_digest: bytes
    recorded_at_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class ClientKey:
    """What identifies a client's request, and the fingerprint of what it asked for.

    Attributes:
        request_id: Of one sending; not part of the fingerprint.
        client_id: Who asks.
        idempotency_key: The same for every resend, unique for the client.
        fingerprint: SHA-256 over the request's canonical JSON, 32 bytes.
    """

    request_id: str
    client_id: str
    idempotency_key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class ClientReceipt:
    """The durable answer to a client's command; its blobs are stored already.

    Attributes:
        key: What it answers.
        operation: The command's name, 1 to 64 characters.
        run_id: The run that it is about, when there is one.
        accepted_revision: The revision that it led to.
        outcome: One of the closed set of outcomes.
        receipt_hash: The blob of the answer's content.
        error_hash: The blob of the refusal.
        host_epoch: The server that answered.
        created_at_ms: When the command was decided.
        completed_at_ms: When it was answered.
    """

    key: ClientKey
    operation: str
    run_id: str | None
    accepted_revision: int | None
    outcome: str
    receipt_hash: bytes | None
    error_hash: bytes | None
    host_epoch: int
    created_at_ms: int
    completed_at_ms: int


@dataclass(frozen=True, slots=True)
class WorkerReceipt:
    """The durable answer to a runner's message; its blobs are stored already.

    Attributes:
        worker_epoch: The runner process.
        message_id: Its own number for the message.
        fingerprint: SHA-256 over the message's canonical JSON, 32 bytes.
        outcome: `accepted`, `adopted`, `rejected` or `claimLost`.
        accepted_revision: The revision that it led to.
        result_hash: The blob of the answer's content.
        error_hash: The blob of the refusal.
        completed_at_ms: When it was answered.
    """

    worker_epoch: str
    message_id: str
    fingerprint: bytes
    outcome: str
    accepted_revision: int | None
    result_hash: bytes | None
    error_hash: bytes | None
    completed_at_ms: int


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """An earlier answer, given again.

    Attributes:
        outcome: As stored; an accepted one answers the request that comes again as `adopted`.
        accepted_revision: The revision that the first request led to.
        receipt: The answer's content.
        error: The refusal's content.
    """

    outcome: str
    accepted_revision: int | None
    receipt: bytes | None
    error: bytes | None


@dataclass(frozen=True, slots=True)
class Permit:
    """The facts of a claim that a write relies on; they are compared with the lease.

    Attributes:
        resource_id: The aggregate that was claimed.
        owner_type: The owner's class.
        owner_id: The owner.
        token: The secret of this claim; only its SHA-256 is stored.
        generation: Which owner this is, counted from 1.
    """

    resource_id: str
    owner_type: str
    owner_id: str
    token: bytes
    generation: int


@dataclass(frozen=True, slots=True)
class OwnedLease:
    """A claim that begins: whose, under which generation, and until when.

    Attributes:
        resource_id: The aggregate that is claimed.
        owner_type: The owner's class.
        owner_id: The owner.
        token: The secret of this claim; only its SHA-256 is stored.
        generation: As the event that claimed it says.
        acquired_at_ms: The command's wall time.
        expires_at_ms: When it ends unless it is renewed.
    """

    resource_id: str
    owner_type: str
    owner_id: str
    token: bytes
    generation: int
    acquired_at_ms: int
    expires_at_ms: int
