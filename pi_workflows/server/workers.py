"""Runner processes as the database keeps them: recorded before they are spawned, until their end.

These rows belong to live processes: no event tells them, and nothing durable is decided from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.blob import Blob
from pi_workflows.kernel.order import Chore
from pi_workflows.server.claims import HeldRun
from pi_workflows.server.launch import Launched, Process
from pi_workflows.server.registry import Exit
from pi_workflows.store import volatile
from pi_workflows.store.transaction import Transaction
from pi_workflows.store.volatile import NewWorker, WorkerEnd


@dataclass(frozen=True, slots=True)
class EndedWorker:
    """How a runner process ended.

    Attributes:
        worker_epoch: The process.
        status: Why.
        exit: How, when there was a process.
        output: The last of what it wrote.
    """

    worker_epoch: str
    status: WorkerEnd
    exit: Exit
    output: bytes


def starting(held: HeldRun, launch: Launched, epoch: int, now_ms: int) -> Chore:
    """Return the row of a process that is about to be spawned, with its envelope."""
    worker = NewWorker(
        worker_epoch=launch.worker_epoch,
        run_id=held.run_id,
        generation=held.permit.generation,
        host_epoch=epoch,
        launch_envelope_hash=launch.envelope.digest,
        launch_step_total=launch.step_total,
    )

    def insert(tx: Transaction) -> None:
        tx.put_blob(launch.envelope, now_ms)
        volatile.insert_worker(tx, worker, now_ms)

    return Chore(insert, len(launch.envelope.content))


def spawned(worker_epoch: str, process: Process) -> Chore:
    """Return which process a starting runner became."""
    pid, identity = process.pid, process.start_identity
    return Chore(lambda tx: volatile.worker_spawned(tx, worker_epoch, pid, identity))


def running(worker_epoch: str, now_ms: int) -> Chore:
    """Return that a runner was ready, and its run goes on."""

    def run(tx: Transaction) -> None:
        volatile.worker_ready(tx, worker_epoch, now_ms)
        volatile.worker_running(tx, worker_epoch)

    return Chore(run)


def ended(worker: EndedWorker, now_ms: int) -> Chore:
    """Return how a process ended, with what it wrote last unless it went well."""
    is_well = worker.status == "exited" and worker.exit.code == 0
    is_kept = worker.output and not is_well
    kept = Blob.text(worker.output.decode(errors="replace")) if is_kept else None

    def end(tx: Transaction) -> None:
        if kept is not None:
            tx.put_blob(kept, now_ms)
        volatile.worker_ended(
            tx,
            worker.worker_epoch,
            worker.status,
            now_ms,
            exit_code=worker.exit.code,
            signal=worker.exit.signal,
            diagnostic_hash=kept.digest if kept is not None else None,
        )

    return Chore(end, len(kept.content) if kept is not None else 0)
