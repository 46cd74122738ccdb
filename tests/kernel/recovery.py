"""Takes over a database as a starting server does, or stops in the middle of that."""

from __future__ import annotations

from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.claim import LoseRunner, ReleaseClaim
from pi_workflows.domain.run.ending import SettleQueue
from pi_workflows.kernel.order import Answer, Chore
from pi_workflows.store import volatile
from pi_workflows.store.leases import owned_claims
from pi_workflows.store.transaction import Transaction
from pi_workflows.views.schedule import claimed_run, unfinished_runs, unsettled_runs
from tests.kernel.harness import Harness


def recover(bench: Harness, commands_max: int | None = None) -> list[Answer]:
    """Open a database again and say what became of what the earlier server did.

    Args:
        bench: Its store was closed or left.
        commands_max: How many commands of the recovery are done; all of them when None.

    Returns:
        The answers, in order.
    """
    bench.reopen()
    with bench.store.snapshot() as read:
        workers = volatile.live_workers(read)

    def end(tx: Transaction) -> None:
        for worker in workers:
            volatile.worker_ended(tx, worker.worker_epoch, "orphaned", bench.clock.now_ms())

    bench.kernel.commit((Chore(end),), bench.clock.now_ms())
    answers: list[Answer] = []
    for stage in (_claims, _runs, _queue):
        for command in stage(bench):
            if commands_max is not None and len(answers) >= commands_max:
                return answers
            order = bench.order(command, name="recovery", actor=Actor("system"))
            answer = bench.submit(order)
            assert isinstance(answer, Answer), answer
            assert answer.error is None, (command, answer.code)
            answers.append(answer)
    return answers


def _claims(bench: Harness) -> list[Command]:
    """Return the ends of the earlier server's claims."""
    with bench.store.snapshot() as read:
        owned = [claimed_run(read, claim.resource_id) for claim in owned_claims(read)]
    return [ReleaseClaim(run.run_id, run.effect_id) for run in owned if run is not None]


def _runs(bench: Harness) -> list[Command]:
    """Return what becomes of the runs that were worked on."""
    with bench.store.snapshot() as read:
        runs = unfinished_runs(read)
    return [
        LoseRunner(run.run_id, run.launch_step_total, counted=False, detail="server lost")
        for run in runs
    ]


def _queue(bench: Harness) -> list[Command]:
    """Return the settlements that are due."""
    with bench.store.snapshot() as read:
        return [SettleQueue(run_id) for run_id in unsettled_runs(read)]
