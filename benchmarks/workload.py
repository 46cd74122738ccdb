"""Databases as a server leaves them, written through the kernel.

Every run is started by a client, claimed, executed by a runner that reports each step, and ended,
with all the rows that this leaves: events, values, receipts of the client and of the runner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.attempt.boundary import FinishAttempt, StartAttempt
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.domain.run.ending import FinishRun
from pi_workflows.domain.run.start import Source, StartRun
from pi_workflows.kernel.dispatch import Host
from pi_workflows.kernel.group import Kernel
from pi_workflows.kernel.order import (
    Answer,
    Chore,
    Claimant,
    ClientIdentity,
    Order,
    WorkerIdentity,
)
from pi_workflows.store.database import Store
from pi_workflows.store.opening import FILE_NAME
from pi_workflows.store.records import ClientKey, Permit
from pi_workflows.store.transaction import Transaction
from pi_workflows.store.volatile import (
    NewWorker,
    ServerClaim,
    insert_worker,
    take_server_epoch,
    worker_ended,
    worker_ready,
)
from projections import route

STEPS: Final = 10
"""Steps of one run."""
_NOW_MS: Final = 1_700_000_000_000
_CLAIM_MS: Final = 60_000
_STEP_MS: Final = 3
_STEP_NS: Final = 2_000_000
_TOKEN: Final = b"t" * 32
_HOST_ID: Final = "host-1"
_GROUP_RUNS: Final = 64
_NODES: Final = tuple(f"step{number}" for number in range(STEPS))
_DEFINITION: Final = Blob.json(
    {
        "schema": "pi-workflows.definition-snapshot.v1",
        "name": "steps",
        "startAt": _NODES[0],
        "maxSteps": STEPS,
        "nodes": {name: {"type": "compute", "timeoutMs": 900_000} for name in _NODES},
        "edges": [{"from": name, "to": after} for name, after in pairwise(_NODES)],
        "mounts": [],
    }
)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run on its way."""

    run_id: str
    permit: Permit | None = None

    @property
    def worker_epoch(self) -> str:
        """The name of its runner process."""
        return f"worker-{self.run_id}"


class _Server:
    """Does what a server would, for a group of runs at once."""

    def __init__(self, store: Store, output: Callable[[str, int], Json]) -> None:
        self._store = store
        self._output = output
        self._now_ms = _NOW_MS
        with store.transaction() as tx:
            claim = ServerClaim(_HOST_ID, _TOKEN, 1, "1", _NOW_MS + _CLAIM_MS)
            epoch = take_server_epoch(tx, claim, _NOW_MS)
        self._host = Host(_HOST_ID, epoch)
        self._kernel = Kernel(store, route, self._host)

    def execute(self, run_ids: Sequence[str]) -> None:
        """Take runs from their start to their end, one boundary of each in one transaction."""
        runs = [_Run(run_id) for run_id in run_ids]
        self._commit([self._start(run) for run in runs])
        claimed = self._commit([self._claim(run) for run in runs])
        runs = [
            _Run(run.run_id, _permit(run.run_id, answer))
            for run, answer in zip(runs, claimed, strict=True)
        ]
        self._commit([self._spawn(run) for run in runs])
        for number in range(STEPS + 2):
            self._commit([self._boundary(run, number) for run in runs])
            self._store.checkpoint()
        self._commit([self._reap(run) for run in runs])

    def _commit(self, works: Sequence[Order | Chore]) -> list[Answer]:
        """Commit one group, all of which must be accepted."""
        self._now_ms += _STEP_MS
        answers: list[Answer] = []
        for result in self._kernel.commit(works, self._now_ms):
            assert isinstance(result, Answer), result
            assert result.outcome is Outcome.ACCEPTED, result
            answers.append(result)
        return answers

    def _start(self, run: _Run) -> Order:
        """Return a client's request for a run."""
        run_id = run.run_id
        fingerprint = hashlib.sha256(run_id.encode()).digest()
        key = ClientKey(f"request-{run_id}", "client-1", f"key-{run_id}", fingerprint)
        return Order(
            name="run.start",
            commands=(
                StartRun(
                    run_id=run_id,
                    project_path="/project",
                    workflow_name="steps",
                    workflow_ref="steps",
                    sources=(Source("", "file", "/project/steps_workflow.py", "a" * 64),),
                    definition=_DEFINITION,
                    run_input=Blob.json({"task": run_id}),
                    launch_options=Blob.json({"sourceFiles": []}),
                    title=None,
                    origin_session_id=f"local-{run_id}",
                    execution_mode="headless",
                ),
            ),
            actor=Actor("control"),
            command_id=f"start-{run_id}",
            identity=ClientIdentity(key, "run.start"),
            run_id=run_id,
        )

    def _claim(self, run: _Run) -> Order:
        """Return the scheduler's claim."""
        return Order(
            name="run.claim",
            commands=(ClaimRun(run.run_id),),
            actor=Actor("host", _HOST_ID),
            command_id=f"claim-{run.run_id}",
            claimant=Claimant(_HOST_ID, _TOKEN, self._now_ms + _CLAIM_MS),
            run_id=run.run_id,
        )

    def _spawn(self, run: _Run) -> Chore:
        """Return the record of a runner process that is ready."""
        now_ms = self._now_ms
        assert run.permit is not None
        worker = NewWorker(
            run.worker_epoch,
            run.run_id,
            run.permit.generation,
            self._host.epoch,
            _DEFINITION.digest,
            0,
        )

        def work(tx: Transaction) -> None:
            insert_worker(tx, worker, now_ms)
            worker_ready(tx, worker.worker_epoch, now_ms)

        return Chore(work)

    def _reap(self, run: _Run) -> Chore:
        """Return the record of a runner process that left."""
        now_ms = self._now_ms

        def work(tx: Transaction) -> None:
            worker_ended(tx, run.worker_epoch, "exited", now_ms, exit_code=0)

        return Chore(work)

    def _boundary(self, run: _Run, number: int) -> Order:
        """Return what a runner reports at a boundary: ready, the first step, each next, the end."""
        return Order(
            name="runner.ready" if number == 0 else "runner.boundary",
            commands=self._commands(run.run_id, number),
            actor=Actor("host", _HOST_ID),
            command_id=f"{run.worker_epoch}:{number}",
            identity=WorkerIdentity(
                run.worker_epoch,
                str(number),
                hashlib.sha256(f"{run.worker_epoch}:{number}".encode()).digest(),
            ),
            permit=run.permit,
            renew_until_ms=self._now_ms + _CLAIM_MS,
            run_id=run.run_id,
        )

    def _commands(self, run_id: str, number: int) -> tuple[Command, ...]:
        """Return the commands of a boundary; the first is 0."""
        if number == 0:
            return (MarkReady(run_id),)
        commands: list[Command] = []
        output = Blob.json(self._output(run_id, number))
        if number > 1:
            key = ids.attempt_id(run_id, _NODES[number - 2], 1)
            commands.append(FinishAttempt(run_id, key, "ok", output=output, elapsed_ns=_STEP_NS))
        if number <= STEPS:
            node = _NODES[number - 1]
            key = ids.attempt_id(run_id, node, 1)
            commands.append(StartAttempt(run_id, key, node, 1, 1, "compute", 900_000))
        else:
            commands.append(FinishRun(run_id, "completed", output=output))
        return tuple(commands)


def _permit(run_id: str, answer: Answer) -> Permit:
    """Return the proof of a claim."""
    lease = answer.events[0].fact.lease
    assert lease is not None
    return Permit(ids.resource_id("run", run_id), "host", _HOST_ID, _TOKEN, lease.generation)


def database(directory: Path, run_count: int, output: Callable[[str, int], Json]) -> Path:
    """Write a database of completed runs of `STEPS` steps, and close it in order.

    Args:
        directory: A state directory that does not exist yet.
        run_count: How many runs, at least one.
        output: The output of a run's step, by run ID and number of the step.

    Returns:
        The file, which needs nothing beside it.
    """
    store = Store.open(directory, now_ms=_NOW_MS, app_version="bench")
    try:
        server = _Server(store, output)
        for group in _groups(run_count):
            server.execute(group)
    finally:
        store.close()
    return directory / FILE_NAME


def _groups(run_count: int) -> Iterator[list[str]]:
    """Yield the names of the runs that go on side by side."""
    names = (f"run-{number:06}" for number in range(run_count))
    while group := list(islice(names, _GROUP_RUNS)):
        yield group
