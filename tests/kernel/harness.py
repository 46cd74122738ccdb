"""A real kernel over a real file, with a clock that only tests move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.sql import Statement, plain
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.attempt.boundary import FinishAttempt, StartAttempt
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.decision.resolution import AnswerDecision, CloseDecision
from pi_workflows.domain.effect.application import BeginEffect, ReserveEffect, SettleEffect
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.message.branch import ReportBranch
from pi_workflows.domain.message.terminal import TellEnd
from pi_workflows.domain.message.turn import EndTurn, StartTurn
from pi_workflows.domain.request.closing import ExpireRequest
from pi_workflows.domain.request.submission import JudgeSubmission, SubmitCandidate, SubmitText
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.domain.run.ending import FinishRun
from pi_workflows.domain.run.start import Source, StartRun
from pi_workflows.domain.session_rows import TurnEnd
from pi_workflows.kernel.dispatch import Host
from pi_workflows.kernel.group import Kernel, Result
from pi_workflows.kernel.order import (
    Answer,
    Chore,
    Claimant,
    ClientIdentity,
    Order,
    WorkerIdentity,
)
from pi_workflows.store.database import Store
from pi_workflows.store.records import ClientKey, Permit
from pi_workflows.store.transaction import Transaction
from pi_workflows.store.volatile import NewWorker, ServerClaim, insert_worker, take_server_epoch
from projections import route

START_MS = 1_700_000_000_000
CLAIM_MS = 60_000
TOKEN = b"t" * 32
SESSION = "session-1"
CONTRACT = "pi-workflows.interaction-contract.v1"
_CONTROL = Actor("control")
_ACTORS: dict[type[Command], Actor] = {
    AnswerDecision: Actor("human", "operator:key-1"),
    CloseDecision: Actor("policy", "host-1"),
}


class FixedClock:
    """Time that stands still until a test moves it."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.wall_ms = now_ms
        self.elapsed_ns = 0

    def now_ms(self) -> int:
        """Return the wall time that the test set."""
        return self.wall_ms

    def monotonic_ns(self) -> int:
        """Return the monotonic reading that the test set."""
        return self.elapsed_ns

    def advance_ms(self, milliseconds: int) -> None:
        """Let both clocks run on."""
        self.wall_ms += milliseconds
        self.elapsed_ns += milliseconds * 1_000_000


def _source(edge: Json) -> str:
    """Return the node that an edge leaves."""
    assert isinstance(edge, dict)
    return str(edge["from"])


def definition(
    nodes: dict[str, dict[str, Json]],
    edges: Sequence[dict[str, Json]] = (),
    *,
    start: str | None = None,
    max_steps: int = 100,
    settings: Json = None,
) -> Blob:
    """Return a stored definition: nodes by name, `compute` unless they say otherwise."""
    document: dict[str, Json] = {
        "schema": "pi-workflows.definition-snapshot.v1",
        "name": "sample",
        "startAt": start or next(iter(nodes)),
        "maxSteps": max_steps,
        "nodes": {
            name: {"type": "compute", "timeoutMs": 900_000, **node} for name, node in nodes.items()
        },
        "edges": sorted(edges, key=_source),
        "mounts": [],
    }
    if settings is not None:
        document["settings"] = settings
    blob = Blob.json(document)
    Snapshot.parse(blob.content)
    return blob


LINE = definition({"one": {}, "two": {}}, [{"from": "one", "to": "two"}])


class Harness:
    """Drives one database.

    Attributes:
        clock: The only time there is.
        store: The open database.
        kernel: The kernel over it.
        heard: Told of each order that was submitted by itself, and of its answer.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = FixedClock()
        self.heard: Callable[[Order, Answer], None] | None = None
        self._count = 0
        self._opened = 0
        self.reopen()

    def reopen(self) -> None:
        """Open the database and take the next epoch, as a starting server does."""
        now_ms = self.clock.now_ms()
        self._opened += 1
        host_id = f"host-{self._opened}"
        self.store = Store.open(self.directory, now_ms=now_ms, app_version="0.0.0")
        with self.store.transaction() as tx:
            claim = ServerClaim(host_id, TOKEN, 1, "1", now_ms + 30_000)
            epoch = take_server_epoch(tx, claim, now_ms)
        self.host = Host(host_id, epoch)
        self.kernel = Kernel(self.store, route, self.host)

    def submit(self, order: Order) -> Result:
        """Commit one order in a group of its own."""
        result = self.kernel.commit((order,), self.clock.now_ms())[0]
        if self.heard is not None and isinstance(result, Answer):
            self.heard(order, result)
        return result

    def order(self, *commands: Command, permit: Permit | None = None, **kwargs: object) -> Order:
        """Return an order by a control client, or by the runner that has a permit."""
        self._count += 1
        expected = kwargs.get("expected_revision")
        assert expected is None or isinstance(expected, int)
        identity = kwargs.get("identity")
        assert identity is None or isinstance(identity, ClientIdentity | WorkerIdentity)
        usual = _ACTORS.get(type(commands[0]), _CONTROL)
        actor = kwargs.get("actor", Actor("host", self.host.host_id) if permit else usual)
        assert isinstance(actor, Actor)
        token = kwargs.get("token", TOKEN)
        assert isinstance(token, bytes)
        return Order(
            name=str(kwargs.get("name", "test")),
            commands=commands,
            actor=actor,
            command_id=f"command-{self._count}",
            expected_revision=expected,
            identity=identity,
            permit=permit,
            renew_until_ms=self.clock.now_ms() + CLAIM_MS,
            claimant=Claimant(self.host.host_id, token, self.clock.now_ms() + CLAIM_MS),
            run_id=commands[0].run_id,
        )

    def answer(self, *commands: Command, permit: Permit | None = None, **kwargs: object) -> Answer:
        """Commit commands in one order and return what became of them."""
        result = self.submit(self.order(*commands, permit=permit, **kwargs))
        assert isinstance(result, Answer), result
        return result

    def do(self, *commands: Command, permit: Permit | None = None, **kwargs: object) -> Answer:
        """Commit commands that must be accepted or adopted."""
        answer = self.answer(*commands, permit=permit, **kwargs)
        assert answer.outcome in {Outcome.ACCEPTED, Outcome.ADOPTED}, (answer.code, answer.error)
        return answer

    def client(self, key: str, fingerprint: bytes = b"f" * 32) -> ClientIdentity:
        """Return the identity of a client's command under an idempotency key."""
        self._count += 1
        return ClientIdentity(
            ClientKey(f"request-{self._count}", "client", key, fingerprint), "run.start"
        )

    def start(self, run_id: str = "run-1", workflow: Blob = LINE, **changes: object) -> StartRun:
        """Return the command that starts a run of a definition."""
        run_input = changes.get("run_input", {"task": "check"})
        session = changes.get("session")
        return StartRun(
            run_id=run_id,
            project_path=str(changes.get("project_path", "/project")),
            workflow_name="sample",
            workflow_ref="sample",
            sources=(Source("", "file", "/project/sample_workflow.py", "a" * 64),),
            definition=workflow,
            run_input=Blob.json(run_input),  # type: ignore[arg-type] # what a test passes is JSON
            launch_options=Blob.json({"sourceFiles": []}),
            title=None,
            origin_session_id=str(session) if session else f"local-{run_id}",
            execution_mode="interactive" if session else "headless",
        )

    def claim(self, run_id: str = "run-1") -> Permit:
        """Claim a due run for a runner, and return the proof."""
        answer = self.do(ClaimRun(run_id))
        lease = answer.events[0].fact.lease
        assert lease is not None
        return Permit(
            ids.resource_id("run", run_id), "host", self.host.host_id, TOKEN, lease.generation
        )

    def launch(
        self, run_id: str = "run-1", workflow: Blob = LINE, session: str | None = None
    ) -> Permit:
        """Start a run, in a session if one is named, claim it and let its runner be ready."""
        self.do(self.start(run_id, workflow, session=session))
        return self.relaunch(run_id)

    def relaunch(self, run_id: str = "run-1") -> Permit:
        """Claim a queued run and let its runner be ready."""
        permit = self.claim(run_id)
        self.do(MarkReady(run_id), permit=permit)
        return permit

    def spawn(self, worker_epoch: str, permit: Permit, run_id: str = "run-1") -> None:
        """Keep that a runner serves a run, whose messages can then be remembered."""
        now_ms = self.clock.now_ms()
        steps = sum(row[0] == run_id for row in self.dump("run_steps"))
        worker = NewWorker(
            worker_epoch, run_id, permit.generation, self.host.epoch, LINE.digest, steps
        )

        def insert(tx: Transaction) -> None:
            tx.put_blob(LINE, now_ms)
            insert_worker(tx, worker, now_ms)

        self.kernel.commit((Chore(insert),), now_ms)

    def revision(self, run_id: str = "run-1") -> int:
        """Return the revision that a run has now."""
        revision = next(row[3] for row in self.dump("resources") if row[2] == run_id)
        assert isinstance(revision, int)
        return revision

    def dump(self, table: str) -> list[tuple[object, ...]]:
        """Return every row of a table; only tests look at a database so directly."""
        with self.store.snapshot() as snapshot:
            return list(snapshot.each(plain, _everything(table)))


def begin(
    node: str,
    *,
    run_id: str = "run-1",
    visit: int = 1,
    number: int = 1,
    node_type: str = "compute",
) -> StartAttempt:
    """Return the command that starts a node."""
    key = ids.attempt_id(run_id, node, number)
    timeout_ms = 0 if node_type == "checkpoint" else 900_000
    return StartAttempt(run_id, key, node, visit, number, node_type, timeout_ms)


def end(
    node: str,
    output: Json = None,
    *,
    run_id: str = "run-1",
    number: int = 1,
    outcome: str = "ok",
    elapsed_ms: int = 5,
) -> FinishAttempt:
    """Return the command that settles a node's attempt."""
    failure = None if outcome == "ok" else Failure("nodeFailed", "it did not work")
    return FinishAttempt(
        run_id,
        ids.attempt_id(run_id, node, number),
        outcome,  # type: ignore[arg-type] # tests pass the four outcomes
        output=Blob.json(output) if outcome == "ok" else None,
        failure=failure,
        elapsed_ns=elapsed_ms * 1_000_000,
    )


def ask(node: str, *, run_id: str = "run-1", number: int = 1) -> WaitForInput:
    """Return the command with which a checkpoint asks."""
    key = ids.attempt_id(run_id, node, number)
    return WaitForInput(run_id, key, "checkpoint", Blob.json({"summary": "Go on?"}))


def ask_agent(
    node: str, prompt: str = "Plan it.", *, run_id: str = "run-1", number: int = 1
) -> WaitForInput:
    """Return the command with which an agent's node asks a model for its output."""
    contract: Json = {
        "schema": CONTRACT,
        "kind": "agent",
        "nodeId": node,
        "prompt": prompt,
        "expectedOutput": "A plan.",
    }
    return WaitForInput(run_id, ids.attempt_id(run_id, node, number), "agent", Blob.json(contract))


def ask_text(
    node: str, chars_max: int | None = None, *, run_id: str = "run-1", number: int = 1
) -> WaitForInput:
    """Return the command with which an agent's node asks a model for the text of its turn."""
    contract: dict[str, Json] = {
        "schema": CONTRACT,
        "kind": "assistant",
        "nodeId": node,
        "prompt": "Tell it.",
    }
    if chars_max is not None:
        contract["maxChars"] = chars_max
    key = ids.attempt_id(run_id, node, number)
    return WaitForInput(run_id, key, "assistant", Blob.json(contract))


def request_of(node: str, *, run_id: str = "run-1", number: int = 1) -> str:
    """Return the request that a node's attempt has."""
    return ids.request_id(run_id, ids.attempt_id(run_id, node, number))


def step_message(node: str, key: str = "initial", *, run_id: str = "run-1", number: int = 1) -> str:
    """Return the message that tells a session its step: `initial`, `reminder:TURN` or so."""
    return ids.message_id("step", request_of(node, run_id=run_id, number=number), key)


def end_message(run_id: str = "run-1") -> str:
    """Return the message that tells a session the end of its run."""
    return ids.message_id("terminal", run_id, "end")


def report_branch(
    message_id: str | None,
    entry_id: str | None = None,
    *,
    session: str = SESSION,
    run_id: str = "run-1",
    is_idle: bool = True,
    has_pending: bool = False,
) -> ReportBranch:
    """Return what a session says of its branch: the entry that holds a message, or none does."""
    return ReportBranch(run_id, session, message_id, entry_id, is_idle, has_pending)


def start_turn(
    message_id: str, turn_id: str = "turn-1", *, session: str = SESSION, run_id: str = "run-1"
) -> StartTurn:
    """Return what a session says when its model begins to work for a message."""
    return StartTurn(run_id, session, message_id, turn_id)


def end_turn(
    message_id: str,
    turn_id: str = "turn-1",
    reason: TurnEnd = "completed",
    *,
    session: str = SESSION,
    run_id: str = "run-1",
    elapsed_ms: int = 0,
) -> EndTurn:
    """Return what a session says when a turn is over; how it ended, and what it took."""
    entry = f"said-{turn_id}" if reason == "completed" else None
    return EndTurn(run_id, session, message_id, turn_id, reason, entry, elapsed_ms, elapsed_ms)


def submit(
    request_id: str,
    value: Json = "done",
    *,
    name: str = "s1",
    session: str | None = SESSION,
    run_id: str = "run-1",
    revision: int | None = 1,
) -> SubmitCandidate:
    """Return the command that hands in what a model made of its step."""
    return SubmitCandidate(
        run_id,
        request_id,
        revision,
        f"submission-{name}",
        f"key-{name}",
        session,
        Blob.json(value),
    )


def judge(
    request_id: str,
    value: Json = "done",
    *,
    name: str = "s1",
    error: str | None = None,
    run_id: str = "run-1",
    elapsed_ms: int = 0,
) -> JudgeSubmission:
    """Return the command that says what a candidate is worth: a value, or why it is refused."""
    verdict = None if error is not None else Blob.json(value)
    key = f"submission-{name}"
    return JudgeSubmission(run_id, request_id, key, verdict, error, elapsed_ms)


def text(
    request_id: str,
    said: str = "done",
    *,
    name: str = "s1",
    session: str = SESSION,
    run_id: str = "run-1",
    revision: int | None = 1,
) -> SubmitText:
    """Return the command that hands in the text that a turn ended with."""
    return SubmitText(
        run_id,
        request_id,
        revision,
        f"submission-{name}",
        f"key-{name}",
        session,
        said,
        f"entry-{name}",
    )


def expire(request_id: str, elapsed_ms: int = 900_000, *, run_id: str = "run-1") -> ExpireRequest:
    """Return the command that says that the time for an answer is over."""
    return ExpireRequest(run_id, request_id, elapsed_ms)


def tell_end(run_id: str = "run-1") -> TellEnd:
    """Return the command that tells a session its run's end."""
    return TellEnd(run_id)


def finish(output: Json = None, *, run_id: str = "run-1", outcome: str = "completed") -> FinishRun:
    """Return the command that ends a run."""
    failure = None if outcome == "completed" else Failure("nodeFailed", "it did not work")
    return FinishRun(
        run_id,
        outcome,  # type: ignore[arg-type] # tests pass the three outcomes
        output=Blob.json(output) if outcome == "completed" else None,
        failure=failure,
    )


def reserve(
    node: str, recovery: str = "idempotent", request: Json = "do it", *, number: int = 1
) -> ReserveEffect:
    """Return the command that reserves a node's effect."""
    return ReserveEffect(
        "run-1",
        ids.attempt_id("run-1", node, number),
        "deploy",
        recovery,  # type: ignore[arg-type] # tests pass the two policies
        Blob.json(request),
    )


def try_effect(effect_id: str, number: int = 1) -> BeginEffect:
    """Return the command that begins a try."""
    return BeginEffect("run-1", effect_id, number, "worker-1")


def settle(effect_id: str, outcome: str = "applied", number: int = 1) -> SettleEffect:
    """Return the command that settles a try."""
    return SettleEffect(
        "run-1",
        effect_id,
        number,
        outcome,  # type: ignore[arg-type] # tests pass the three outcomes
        result=Blob.json({"id": 7}) if outcome == "applied" else None,
        failure=Failure("refused", "no") if outcome == "rejected" else None,
    )


def _everything(table: str) -> Statement:
    """Return the query for every row of a table."""
    return Statement(table, f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608 - a test's own
