"""What may happen to a run, as short lives: each goes on by one command whenever it is asked to."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, decode
from pi_workflows.base.errors import Outcome
from pi_workflows.definition.effects import effect_key
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.attempt.boundary import FinishAttempt, StartAttempt
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.effect.application import BeginEffect, ReserveEffect, SettleEffect
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.fact import Actor, Command, Stored
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import ClaimRun, LoseRunner, MarkReady
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.ending import FinishRun
from pi_workflows.domain.run.start import RestartRun, Source, StartRun, restart_id
from pi_workflows.domain.run.state import pending_request
from pi_workflows.kernel.order import Answer, Chore, ClientIdentity, Order, WorkerIdentity
from pi_workflows.store import volatile
from pi_workflows.store.records import ClientKey, Permit
from pi_workflows.store.transaction import Transaction
from pi_workflows.store.volatile import NewWorker, WorkerEnd
from tests.kernel.harness import Harness, definition
from tests.kernel.workflows import WORKFLOWS, agent, retry, speaker

Told: TypeAlias = Callable[[Sequence[Stored]], None]
Steps: TypeAlias = Generator[int]
"""Each step yields the wall time, in milliseconds, before which the next one is not due."""

_OPERATIONS: Final[dict[type[Command], str]] = {
    StartRun: "run.start",
    RestartRun: "run.restart",
    PauseRun: "run.pause",
    ResumeRun: "run.resume",
    CancelRun: "run.cancel",
    AnswerCheckpoint: "checkpoint.answer",
    ResolveEffect: "effect.resolve",
}


def _shipping() -> Blob:
    """Return the mixed workflow without its way back, so that it can complete."""
    document = decode(WORKFLOWS["mixed"].content)
    assert isinstance(document, dict)
    edges = document["edges"]
    assert isinstance(edges, list)
    ways = [edge for edge in edges if isinstance(edge, dict) and edge["from"] != "publish"]
    return Blob.json({**document, "edges": [*ways]})


_DEFINITIONS: Final = {
    **WORKFLOWS,
    "shipping": _shipping(),
    "talking": definition(
        {
            "plan": agent(timeoutMs=5_000, retry=retry(0, 4)),
            "told": {"type": "notify", "notifyKind": "progress"},
            "say": speaker(80),
            "done": {},
        },
        [
            {"from": "plan", "to": "told"},
            {"from": "told", "to": "say"},
            {"from": "say", "to": "done"},
        ],
    ),
}


class Life:
    """One run from outside: what its clients, its runners and the server say about it.

    Attributes:
        bench: The database.
        run_id: The run.
        chance: Where values differ from run to run.
        value_bytes: How long the values of its nodes are, about.
        kind: What it is an example of.
        permit: The claim of its runner; None while it has none.
        ancestors: The runs that had to be there before it.
    """

    def __init__(
        self, bench: Harness, kind: str, chance: random.Random, told: Told, value_bytes: int = 40
    ) -> None:
        self.bench = bench
        self.kind = kind
        self.run_id = f"run-{chance.randbytes(16).hex()}"
        self.ancestors: list[Life] = []
        self.chance = chance
        self.value_bytes = value_bytes
        self.permit: Permit | None = None
        self._told = told
        self._worker: str | None = None
        self._count = 0
        self._tries: dict[str, int] = {}
        self._visits: dict[str, int] = {}
        self._steps = 0
        self._workflow = _DEFINITIONS["line"]

    def ancestor(self, kind: str) -> Life:
        """Return a life that this one is going to continue."""
        life = Life(self.bench, kind, self.chance, self._told, self.value_bytes)
        self.ancestors.append(life)
        return life

    def family(self) -> list[Life]:
        """Return the lives that this one continues, the oldest first, and itself."""
        return [*(life for each in self.ancestors for life in each.family()), self]

    # --- what clients say ------------------------------------------------------------------------

    def start(self, workflow: str, *, session: str | None = None, title: str | None = None) -> None:
        """Queue the run."""
        self._workflow = _DEFINITIONS[workflow]
        project = f"/projects/{self.chance.choice(('shop', 'site'))}"
        revision = hashlib.sha256(workflow.encode()).hexdigest()
        sources = [Source("", "file", f"{project}/{workflow}_workflow.py", revision)]
        if workflow == "shipping":
            sources.append(Source("publish", "builtin", "publish", revision[::-1]))
        command = self.bench.start(
            self.run_id,
            self._workflow,
            project_path=project,
            session=session,
            run_input={"task": self.text(), "number": self.chance.randrange(10**6)},
        )
        command = replace(command, workflow_name=f"{workflow}-work", workflow_ref=workflow)
        self.client(replace(command, sources=tuple(sources), title=title))

    def restart(self, parent: Life) -> None:
        """Queue the run as the restart of one that ended."""
        self._workflow = parent._workflow
        revision = self.bench.revision(parent.run_id)
        self.run_id = restart_id(parent.run_id, revision)
        parent.client(RestartRun(parent.run_id, revision))

    def client(self, command: Command, *, code: str | None = None) -> Answer:
        """Send a command as a local client does; its receipt is kept.

        Args:
            command: The command.
            code: With which code it is refused; None when it is done.
        """
        operation = _OPERATIONS[type(command)]
        name = self._name("request")
        key = ClientKey(name, "client-1", f"key-{name}", hashlib.sha256(name.encode()).digest())
        identity = ClientIdentity(key, operation)
        actor = Actor("control", "client-1")
        order = self.bench.order(command, name=operation, actor=actor, identity=identity)
        answer = self.submit(order)
        assert answer.code == code, (self.run_id, command, answer.code, answer.error)
        return answer

    def answer(self, value: Json) -> None:
        """Answer the run's question."""
        with self.bench.store.snapshot() as read:
            request = pending_request(read, self.run_id)
        assert request is not None
        name = self._name("answer")
        self.client(
            AnswerCheckpoint(
                self.run_id, request.request_id, request.revision, name, name, Blob.json(value)
            )
        )

    def resolve(self, node: str, action: Literal["confirm", "retry", "reject"]) -> None:
        """Say what became of a node's effect."""
        count = next(row[9] for row in self.bench.dump("effects") if row[0] == self.effect_id(node))
        assert isinstance(count, int)
        effect_id = self.effect_id(node)
        self.client(ResolveEffect(self.run_id, effect_id, count, action, "I looked at the site"))

    # --- what the server says --------------------------------------------------------------------

    def boot(self) -> None:
        """Claim the run, launch a runner and let it be ready."""
        self._left("crashed")
        claim = self.bench.order(
            ClaimRun(self.run_id), name="run.claim", actor=Actor("host", self.bench.host.host_id)
        )
        lease = self.submit(claim).events[0].fact.lease
        assert lease is not None
        host_id = self.bench.host.host_id
        resource_id = ids.resource_id("run", self.run_id)
        assert claim.claimant is not None
        permit = Permit(resource_id, "host", host_id, claim.claimant.token, lease.generation)
        self._worker = worker_epoch = self._name("worker")
        launch = Blob.json({"runId": self.run_id, "number": self._count})
        worker = NewWorker(
            worker_epoch,
            self.run_id,
            lease.generation,
            self.bench.host.epoch,
            launch.digest,
            self._steps,
        )
        now_ms = self.bench.clock.now_ms()

        def spawn(tx: Transaction) -> None:
            tx.put_blob(launch, now_ms)
            volatile.insert_worker(tx, worker, now_ms)
            volatile.worker_spawned(tx, worker_epoch, 4_000 + self._count, "boot:1")
            volatile.worker_ready(tx, worker_epoch, now_ms)
            volatile.worker_running(tx, worker_epoch)

        ready = self.bench.order(MarkReady(self.run_id), name="run.ready", permit=permit)
        _, answer = self.bench.kernel.commit((Chore(spawn), ready), now_ms)
        self.permit = permit
        self._learn(answer)

    def system(self, command: Command, name: str = "run.runner_ended") -> None:
        """Let the server itself decide something."""
        answer = self.submit(self.bench.order(command, name=name, actor=Actor("system")))
        assert answer.error is None, (command, answer.code)

    def lose(self, *, is_counted: bool = True) -> None:
        """End the runner without a word."""
        self._left("crashed")
        self.system(LoseRunner(self.run_id, self._steps, counted=is_counted, detail="killed"))

    # --- what runners say ------------------------------------------------------------------------

    def runner(self, *commands: Command, code: str | None = None) -> Answer:
        """Propose commands as the run's runner; the receipt is kept.

        Args:
            commands: In order.
            code: As in `client`.
        """
        assert self._worker is not None
        name = self._name("message")
        identity = WorkerIdentity(self._worker, name, hashlib.sha256(name.encode()).digest())
        order = self.bench.order(
            *commands, name="run.propose", permit=self.permit, identity=identity
        )
        answer = self.submit(order)
        assert answer.code == code, (self.run_id, commands, answer.code, answer.error)
        return answer

    def begin(self, node: str, *, is_again: bool = False) -> StartAttempt:
        """Return the start of a node: a new visit, or the last one again."""
        declared = Snapshot.parse(self._workflow.content).nodes[node]
        self._tries[node] = self._tries.get(node, 0) + 1
        self._visits[node] = self._visits.get(node, 0) + (not is_again)
        timeout_ms = 7_000 if declared.timeout_ms is None else declared.timeout_ms
        return StartAttempt(
            self.run_id,
            self.attempt_id(node),
            node,
            self._visits[node],
            self._tries[node],
            declared.type,
            timeout_ms,
        )

    def end(
        self,
        node: str,
        outcome: Literal["ok", "failed", "timed_out"] = "ok",
        route: str | None = None,
    ) -> FinishAttempt:
        """Return the end of a node's newest attempt; its output is long enough to be a value."""
        output: Json = {"text": self.text()} if route is None else {"route": route}
        return FinishAttempt(
            self.run_id,
            self.attempt_id(node),
            outcome,
            output=Blob.json(output) if outcome == "ok" else None,
            receipt=Blob.json({"tries": self._tries[node]}) if outcome == "ok" else None,
            failure=None if outcome == "ok" else self._failure(),
            elapsed_ns=self.chance.randrange(5_000) * 1_000_000,
        )

    def update(self, node: str, key: str = "build") -> RecordUpdate:
        """Return progress of a node."""
        data = Blob.json({"label": self.text(20), "done": self.chance.randrange(100)})
        return RecordUpdate(self.run_id, self.attempt_id(node), "progress", key, data)

    def ask(self, node: str) -> WaitForInput:
        """Return the question of a checkpoint."""
        contract = Blob.json({"summary": f"Go on? {self.text(20)}"})
        return WaitForInput(self.run_id, self.attempt_id(node), "checkpoint", contract)

    def reserve(self, node: str) -> ReserveEffect:
        """Return the reservation of a node's effect."""
        policy = Snapshot.parse(self._workflow.content).nodes[node].effect
        assert policy is not None
        request = Blob.json({"deploy": self.run_id, "visit": self._visits[node]})
        return ReserveEffect(
            self.run_id, self.attempt_id(node), policy.type, policy.recovery, request
        )

    def attempt_effect(self, node: str, number: int = 1) -> BeginEffect:
        """Return the begin of a try."""
        return BeginEffect(self.run_id, self.effect_id(node), number, self._worker or "")

    def settle(
        self,
        node: str,
        outcome: Literal["applied", "rejected", "uncertain"] = "applied",
        number: int = 1,
    ) -> SettleEffect:
        """Return the end of a try."""
        return SettleEffect(
            self.run_id,
            self.effect_id(node),
            number,
            outcome,
            result=Blob.json({"url": self.text()}) if outcome == "applied" else None,
            failure=Failure("refused", "the site said no") if outcome == "rejected" else None,
        )

    def finish(
        self,
        node: str,
        outcome: Literal["completed", "failed", "timed_out"],
        code: str | None = None,
    ) -> None:
        """End the run behind a node; `code` as in `runner`."""
        output = None
        if outcome == "completed":
            rows = self.bench.dump("node_attempts")
            digest = next(row[8] for row in rows if row[0] == self.attempt_id(node))
            assert isinstance(digest, bytes)
            with self.bench.store.snapshot() as read:
                output = Blob.of(read.blob(digest), "application/json")
        failure = None if outcome == "completed" else self._failure()
        self.runner(FinishRun(self.run_id, outcome, output=output, failure=failure), code=code)

    # --- names and values ------------------------------------------------------------------------

    def attempt_id(self, node: str) -> str:
        """Return the identity of a node's newest attempt."""
        return ids.attempt_id(self.run_id, node, self._tries[node])

    def effect_id(self, node: str) -> str:
        """Return the identity of the effect of a node's newest visit."""
        policy = Snapshot.parse(self._workflow.content).nodes[node].effect
        assert policy is not None
        key = effect_key(self.run_id, policy.type, node, self._visits[node])
        return ids.effect_id(ids.resource_id("run", self.run_id), policy.type, key)

    def text(self, chars: int | None = None) -> str:
        """Return a text that no other value has, about as long as asked or as this run's values."""
        size = max(8, int((chars or self.value_bytes) * self.chance.uniform(0.5, 1.5)))
        return self.chance.randbytes(size // 2).hex()

    def _failure(self) -> Failure:
        """Return what went wrong in a node."""
        return Failure("nodeFailed", f"it did not work: {self.text(20)}")

    def _name(self, kind: str) -> str:
        """Return a name that nothing else of this kind has."""
        self._count += 1
        return f"{kind}-{self._count}-{self.run_id[-32:]}"

    # --- what comes of it ------------------------------------------------------------------------

    def sample(self, node: str, elapsed_ms: int) -> None:
        """Keep how long the node's open interval has been active, as the server does."""
        now_ms = self.bench.clock.now_ms()
        attempt_id = self.attempt_id(node)
        rows = self.bench.dump("attempt_active_intervals")
        number = sum(row[0] == attempt_id for row in rows)

        def keep(tx: Transaction) -> None:
            volatile.sample_active_time(
                tx, attempt_id, number, observed_at_ms=now_ms, elapsed_ms=elapsed_ms
            )

        self.bench.kernel.commit((Chore(keep),), now_ms)

    def server_lost(self) -> None:
        """Take in that the server is gone, and with it every claim."""
        self.permit = self._worker = None

    def submit(self, order: Order) -> Answer:
        """Commit an order and learn from it."""
        answer = self.bench.submit(order)
        self._learn(answer)
        assert isinstance(answer, Answer)
        return answer

    def _learn(self, answer: object) -> None:
        """Take in what a commit did to the run."""
        assert isinstance(answer, Answer), answer
        assert answer.outcome is not Outcome.CLAIM_LOST, (self.run_id, answer.code)
        resource_id = ids.resource_id("run", self.run_id)
        for event in answer.events:
            lease = event.fact.lease
            self._steps += event.fact.type == "attempt.settled"
            if event.resource_id == resource_id and lease is not None and lease.op == "released":
                self._left("exited", 0)
        if answer.events:
            self._told(answer.events)

    def _left(self, status: WorkerEnd, exit_code: int | None = None) -> None:
        """Keep that the runner is gone."""
        worker, self._worker, self.permit = self._worker, None, None
        if worker is None:
            return
        now_ms = self.bench.clock.now_ms()

        def end(tx: Transaction) -> None:
            volatile.worker_ended(tx, worker, status, now_ms, exit_code=exit_code)

        self.bench.kernel.commit((Chore(end),), now_ms)
