"""Process-local facts: the server's epoch, runner processes, samples of active time.

They belong to live processes and clocks. No event tells them, a rebuild leaves them out, and
nothing that is decided from them is durable by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pi_workflows.base.errors import ClaimLost, OwnershipLost
from pi_workflows.base.sql import load
from pi_workflows.store.leases import token_hash

if TYPE_CHECKING:
    from pi_workflows.base.sql import Read
    from pi_workflows.store.transaction import Transaction

WorkerEnd: TypeAlias = Literal[
    "exited", "cancelled", "timedOut", "crashed", "claimLost", "orphaned"
]

_SQL = load(__package__, "volatile.sql")


class ServerState(NamedTuple):
    """The server that claimed the database last; after an orderly stop only its epoch is left."""

    epoch: int
    host_id: str | None
    pid: int | None
    process_start_identity: str | None
    started_at_ms: int | None
    heartbeat_at_ms: int | None
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True)
class ServerClaim:
    """A server that begins.

    Attributes:
        host_id: Random, of this process.
        token: Its secret; only its SHA-256 is stored.
        pid: Its process ID, above 0.
        process_start_identity: What tells it from another process of that ID.
        expires_at_ms: When its claim ends unless a heartbeat moves it.
    """

    host_id: str
    token: bytes
    pid: int
    process_start_identity: str
    expires_at_ms: int


class LiveWorker(NamedTuple):
    """A runner process that has not ended as far as the database knows; `pid` comes late."""

    worker_epoch: str
    run_id: str
    generation: int
    host_epoch: int
    launch_step_total: int
    pid: int | None
    process_start_identity: str | None
    status: str
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A runner process that is about to be spawned.

    Attributes:
        worker_epoch: Random, of this process.
        run_id: The run that it executes.
        generation: Of the run's claim.
        host_epoch: Of the server that spawns it.
        launch_envelope_hash: The blob of its launch envelope, stored already.
        launch_step_total: Steps that the run has now, to tell progress by.
    """

    worker_epoch: str
    run_id: str
    generation: int
    host_epoch: int
    launch_envelope_hash: bytes
    launch_step_total: int


def server_state(read: Read) -> ServerState:
    """Return the server that claimed the database last."""
    state = read.one(ServerState, _SQL["server"])
    assert state is not None, "the server's row is made with the schema"
    return state


def take_server_epoch(transaction: Transaction, claim: ServerClaim, now_ms: int) -> int:
    """Claim the database for a server, whatever claim is stored: it holds the system's lock.

    Args:
        transaction: The open transaction.
        claim: The server.
        now_ms: Wall time, milliseconds.

    Returns:
        Its epoch, one above the last.
    """
    changed = transaction.execute(
        _SQL["take_epoch"],
        host_id=claim.host_id,
        token_hash=token_hash(claim.token),
        pid=claim.pid,
        process_start_identity=claim.process_start_identity,
        now_ms=now_ms,
        expires_at=claim.expires_at_ms,
    )
    assert changed == 1, "the server's row is made with the schema"
    return server_state(transaction.read).epoch


def heartbeat_server(transaction: Transaction, epoch: int, expires_at_ms: int, now_ms: int) -> None:
    """Move the end of the server's own claim.

    Raises:
        OwnershipLost: Another epoch is stored (`ownerChanged`), or the claim has expired while the
            server slept (`expired`): it takes a new epoch.
    """
    changed = transaction.execute(
        _SQL["heartbeat"], epoch=epoch, expires_at=expires_at_ms, now_ms=now_ms
    )
    if changed != 1:
        transaction.check_epoch(epoch)
        raise OwnershipLost("The server's claim has expired.", code=ClaimLost.EXPIRED)


def release_server_epoch(transaction: Transaction, epoch: int) -> bool:
    """Clear the server's claim at an orderly stop; the epoch stays. False when it is another's."""
    return transaction.execute(_SQL["release_epoch"], epoch=epoch) == 1


def insert_worker(transaction: Transaction, worker: NewWorker, now_ms: int) -> None:
    """Record a runner process before it is spawned; the run has no other live one."""
    transaction.execute(
        _SQL["insert_worker"],
        worker_epoch=worker.worker_epoch,
        run_id=worker.run_id,
        generation=worker.generation,
        host_epoch=worker.host_epoch,
        launch_envelope_hash=worker.launch_envelope_hash,
        launch_step_total=worker.launch_step_total,
        now_ms=now_ms,
    )


def worker_spawned(
    transaction: Transaction, worker_epoch: str, pid: int, process_start_identity: str
) -> None:
    """Record which process a starting runner became."""
    changed = transaction.execute(
        _SQL["worker_spawned"],
        worker_epoch=worker_epoch,
        pid=pid,
        process_start_identity=process_start_identity,
    )
    assert changed == 1, f"worker {worker_epoch} was spawned twice, or has ended"


def worker_ready(transaction: Transaction, worker_epoch: str, now_ms: int) -> bool:
    """Record that a runner has verified its sources. False when it is not starting any more."""
    return transaction.execute(_SQL["worker_ready"], worker_epoch=worker_epoch, now_ms=now_ms) == 1


def worker_running(transaction: Transaction, worker_epoch: str) -> bool:
    """Record that a runner executes. False when it was not ready, or has ended."""
    return transaction.execute(_SQL["worker_running"], worker_epoch=worker_epoch) == 1


def worker_ended(
    transaction: Transaction,
    worker_epoch: str,
    status: WorkerEnd,
    now_ms: int,
    *,
    exit_code: int | None = None,
    signal: str | None = None,
    diagnostic_hash: bytes | None = None,
) -> bool:
    """Record how a runner process ended, once.

    Args:
        transaction: The open transaction.
        worker_epoch: The process.
        status: Why it ended.
        now_ms: Wall time, milliseconds.
        exit_code: Of the process, when it exited.
        signal: Its name, when a signal ended it.
        diagnostic_hash: The blob of what it wrote last, stored already.

    Returns:
        Whether it was live until now.
    """
    changed = transaction.execute(
        _SQL["worker_ended"],
        worker_epoch=worker_epoch,
        status=status,
        now_ms=now_ms,
        exit_code=exit_code,
        signal=signal,
        diagnostic_hash=diagnostic_hash,
    )
    return changed == 1


def live_workers(read: Read) -> list[LiveWorker]:
    """Return every runner process that has not ended, by run."""
    return read.all(LiveWorker, _SQL["live_workers"])


def sample_active_time(
    transaction: Transaction,
    attempt_id: str,
    interval_number: int,
    *,
    observed_at_ms: int,
    elapsed_ms: int,
) -> bool:
    """Record how long an open interval has been active, so that a crash loses little of it.

    Args:
        transaction: The open transaction.
        attempt_id: The attempt.
        interval_number: Its open interval.
        observed_at_ms: Wall time of the observation; an earlier one never replaces a later.
        elapsed_ms: Monotonic time since the interval began; it never falls.

    Returns:
        Whether that interval is open.
    """
    changed = transaction.execute(
        _SQL["sample_active_time"],
        attempt_id=attempt_id,
        interval_number=interval_number,
        observed_at=observed_at_ms,
        elapsed_ms=elapsed_ms,
    )
    return changed == 1


def sample_turn(transaction: Transaction, turn_id: str, elapsed_ms: int) -> bool:
    """Record how long an open turn has been active, so that a crash loses little of it.

    Args:
        transaction: The open transaction.
        turn_id: The turn.
        elapsed_ms: Its active time; it never falls.

    Returns:
        Whether that turn is open.
    """
    changed = transaction.execute(
        _SQL["sample_turn"], workflow_turn_id=turn_id, elapsed_ms=elapsed_ms
    )
    return changed == 1
