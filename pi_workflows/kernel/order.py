"""What the writer is asked to do, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.fact import Actor, Command, Stored
from pi_workflows.store.records import ClientKey, Permit
from pi_workflows.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Under which names a client's command is remembered.

    Attributes:
        key: Request ID, client ID, idempotency key and fingerprint.
        operation: The operation's name.
    """

    key: ClientKey
    operation: str


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Under which names a runner's proposal is remembered.

    Attributes:
        worker_epoch: The runner.
        message_id: The proposal's number in that runner's stream.
        fingerprint: SHA-256 of the proposal.
    """

    worker_epoch: str
    message_id: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who takes the claims that the order's events make.

    Attributes:
        owner_id: The owner's identity.
        token: 32 random bytes that prove the claim; they stay in memory.
        expires_at_ms: Wall time at which the claim ends unless it is renewed.
    """

    owner_id: str
    token: bytes = field(repr=False)
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Order:
    """One unit for the writer: a list of commands, all or none, one presentation revision.

    Attributes:
        name: What the events say the command was, such as `run.start`.
        commands: In order; each sees what the one before it did.
        actor: Who asks.
        command_id: The command's identity in the log.
        expected_revision: Revision that the first command's run must have; None where the operation
            has none.
        identity: Under which names it is remembered; None for the server's own commands.
        permit: The claim that authorizes it; None where the operation needs none.
        renew_until_ms: Wall time until which the permit is renewed.
        claimant: Who takes the claims that the events make; None when they make none.
        run_id: The run that the receipt belongs to; None when there is none.
        size_bytes: Payload bytes, for the group's bound.
    """

    name: str
    commands: tuple[Command, ...]
    actor: Actor
    command_id: str
    expected_revision: int | None = None
    identity: ClientIdentity | WorkerIdentity | None = None
    permit: Permit | None = None
    renew_until_ms: int = 0
    claimant: Claimant | None = None
    run_id: str | None = None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Chore:
    """A change of process-local facts only, without event or receipt.

    Heartbeats, worker rows, samples.

    Attributes:
        work: Runs inside the group's transaction, under a savepoint of its own.
        size_bytes: Payload bytes, for the group's bound.
    """

    work: Callable[[Transaction], None]
    size_bytes: int = 0


Work: TypeAlias = Order | Chore


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one piece of work.

    Attributes:
        outcome: The outcome as the wire names it.
        revision: Revision of the command's resource afterwards, when there is one.
        receipt: The stored receipt, canonical JSON.
        error: One line for people, when it was refused.
        code: The refusal's stable code.
        values: What a runner is told beside the receipt.
        events: The events that were appended, follow-ups included, for those who act on them.
        views: The presentation revision that each touched run reached.
    """

    outcome: Outcome
    revision: int | None = None
    receipt: bytes | None = None
    error: str | None = None
    code: str | None = None
    values: Json = None
    events: tuple[Stored, ...] = ()
    views: dict[str, int] = field(default_factory=dict[str, int])
