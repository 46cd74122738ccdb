"""Whatever is asked, in whatever order: the kernel obeys its contracts and loses nothing."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pi_workflows.base import ids
from pi_workflows.base.errors import Outcome, OwnershipLost
from pi_workflows.base.sql import plain
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import ClaimRun, FailLaunch, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.ending import FailRun
from pi_workflows.domain.run.events import LeaseClaimed
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.domain.run.state import open_attempt, run_state
from pi_workflows.kernel.comparison import SQL as COMPARED
from pi_workflows.kernel.order import Answer, Chore, ClientIdentity, Order, WorkerIdentity
from pi_workflows.kernel.verify import verify
from pi_workflows.store import volatile
from pi_workflows.store.records import Permit
from pi_workflows.store.scratch import create_scratch
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.store.transaction import Transaction
from projections import route
from tests.kernel import invariants
from tests.kernel.harness import CLAIM_MS, Harness
from tests.kernel.moves import persons_move, runner_move
from tests.kernel.oddities import odd_command
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.recovery import recover
from tests.kernel.workflows import WORKFLOWS

T = TypeVar("T")

_REFUSED: Final = {Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND, Outcome.CLAIM_LOST}
_STEPS_BETWEEN_REBUILDS: Final = 20
_MOVES_MAX: Final = 400
_CLOCK_STEPS_MS: Final = (1, 900, 2_000, 5_000, 61_000, -1, -3_000, -3_600_000)
_BACK_AGAIN_MS: Final = 7_200_000


class Machine(RuleBasedStateMachine):
    """One database under clients, runners, a scheduler, crashes and a clock that jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="machine-"))
        self.bench = Harness(self.directory / "state")
        self.runs: list[str] = []
        self.permits: dict[str, Permit] = {}
        self.lost: list[Permit] = []
        self.workers: dict[str, str] = {}
        self.sent: list[tuple[Order, Answer]] = []
        self.count = 0
        self.steps = 0
        self.lasting = self.look(invariants.lasting)

    # --- what happens ----------------------------------------------------------------------------

    @initialize(name=st.sampled_from(sorted(WORKFLOWS)))
    def begin(self, name: str) -> None:
        """There is a run from the start."""
        self.ask(self.bench.start("run-1", WORKFLOWS[name]))

    @rule(
        number=st.integers(1, 3),
        name=st.sampled_from(sorted(WORKFLOWS)),
        session=st.sampled_from((None, None, "session-1")),
    )
    def start(self, number: int, name: str, session: str | None) -> None:
        """A client starts a run, under a name that may be taken, in a session that may be busy."""
        self.ask(self.bench.start(f"run-{number}", WORKFLOWS[name], session=session))

    @rule(data=st.data(), moves=st.integers(1, 6))
    def work(self, data: st.DataObject, moves: int) -> None:
        """A runner and its scheduler do what is due; the kernel refuses none of it."""
        run_id = data.draw(st.sampled_from(self.runs))
        for _ in range(moves):
            if not self.move(run_id, lambda of: data.draw(st.sampled_from(of))):
                return

    @rule(data=st.data(), moves=st.integers(1, 6))
    def work_on(self, data: st.DataObject, moves: int) -> None:
        """As `work`: most of a run's life is this."""
        self.work(data, moves)

    @rule(data=st.data())
    def step_in(self, data: st.DataObject) -> None:
        """A person does what lets a run go on; the kernel refuses none of it."""
        run_id = data.draw(st.sampled_from(self.runs))
        self.help(run_id, lambda of: data.draw(st.sampled_from(of)))

    @rule(data=st.data())
    def control(self, data: st.DataObject) -> None:
        """A client commands a run, with the revision that it read or an older one."""
        self.commit(self.control_order(data))

    @rule(data=st.data())
    def oddity(self, data: st.DataObject) -> None:
        """Somebody asks for anything at all, under a claim that holds, is forged, or is none."""
        self.commit(self.odd_order(data))

    @rule(data=st.data(), count=st.integers(2, 4))
    def race(self, data: st.DataObject, count: int) -> None:
        """Several orders that know nothing of each other are decided in one group."""
        makers = (self.control_order, self.odd_order, self.due_order)
        orders = [data.draw(st.sampled_from(makers))(data) for _ in range(count)]
        self.commit(*orders)

    @rule(data=st.data(), is_counted=st.booleans())
    def lose(self, data: st.DataObject, is_counted: bool) -> None:  # noqa: FBT001 - drawn
        """A runner is gone."""
        self.lose_runner(data.draw(st.sampled_from(self.runs)), is_counted=is_counted)

    @rule(
        data=st.data(),
        code=st.sampled_from(("workflowSourceChanged", "definitionChanged", "importError")),
        is_fault=st.booleans(),
    )
    def give_up(self, data: st.DataObject, code: str, is_fault: bool) -> None:  # noqa: FBT001 - drawn
        """The server says that a launch failed, or that a runner broke the protocol."""
        run_id = data.draw(st.sampled_from(self.runs))
        failure = Failure(code, "it is not as it was")
        command = FailRun(run_id, failure) if is_fault else FailLaunch(run_id, failure)
        self.ask(command)

    @rule(by_ms=st.sampled_from(_CLOCK_STEPS_MS))
    def tick(self, by_ms: int) -> None:
        """Time goes on, or the wall clock is set."""
        self.bench.clock.advance_ms(by_ms)

    @rule(data=st.data(), elapsed_ms=st.integers(0, 3_000))
    def sample(self, data: st.DataObject, elapsed_ms: int) -> None:
        """The server keeps how long an attempt has been active, and renews its claims."""
        run_id = data.draw(st.sampled_from(self.runs))
        attempt = self.look(lambda read: open_attempt(read, run_id))
        now_ms = self.bench.clock.now_ms()

        def keep(tx: Transaction) -> None:
            if attempt is not None and attempt.interval_number is not None:
                volatile.sample_active_time(
                    tx,
                    attempt.attempt_id,
                    attempt.interval_number,
                    observed_at_ms=now_ms,
                    elapsed_ms=elapsed_ms,
                )

        self.bench.kernel.commit((Chore(keep),), now_ms)

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        """A claim that holds is renewed; a forged or lost one is not."""
        permit = data.draw(st.sampled_from((*self.permits.values(), *self.lost, None)))
        if permit is None:
            return
        now_ms = self.bench.clock.now_ms()
        chore = Chore(lambda tx: tx.renew_claim(permit, now_ms + CLAIM_MS, now_ms))
        result = self.bench.kernel.commit((chore,), now_ms)[0]
        assert isinstance(result, OwnershipLost) or permit in self.permits.values()

    @rule(is_orderly=st.booleans(), first=st.integers(0, 4))
    def crash(self, is_orderly: bool, first: int) -> None:  # noqa: FBT001 - drawn
        """The server ends; the next one recovers, and may end itself in the middle of that."""
        if is_orderly:
            self.bench.store.close()
        else:
            self.bench.store.crash()
        if first:
            recover(self.bench, commands_max=first - 1)
            self.bench.store.crash()
        recover(self.bench)
        self.lost.extend(self.permits.values())
        self.permits.clear()

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), is_same_request=st.booleans())
    def resend(self, data: st.DataObject, is_same_request: bool) -> None:  # noqa: FBT001 - drawn
        """A client or runner that did not hear its answer gets the same one again."""
        order, first = data.draw(st.sampled_from(self.sent))
        identity = order.identity
        if isinstance(identity, ClientIdentity) and not is_same_request:
            self.count += 1
            key = replace(identity.key, request_id=f"again-{self.count}")
            order = replace(order, identity=replace(identity, key=key))
        (again,) = self.commit(order, is_kept=False)
        adopted = first.outcome if first.outcome in _REFUSED else Outcome.ADOPTED
        if isinstance(identity, WorkerIdentity) and first.error is not None:
            adopted = Outcome.REJECTED  # What runners know, whatever the class of the refusal.
        assert (again.outcome, again.error, again.code) == (adopted, first.error, first.code)
        assert (again.revision, again.events) == (first.revision, ())
        if isinstance(identity, WorkerIdentity):
            assert again.values == first.values
        else:
            assert again.receipt == first.receipt

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def reuse(self, data: st.DataObject) -> None:
        """An identity that was used for something else is a conflict that nobody remembers."""
        order, _ = data.draw(st.sampled_from(self.sent))
        identity = order.identity
        if isinstance(identity, WorkerIdentity):
            changed: ClientIdentity | WorkerIdentity = replace(identity, fingerprint=b"g" * 32)
        else:
            assert identity is not None
            changed = replace(identity, key=replace(identity.key, fingerprint=b"g" * 32))
        (answer,) = self.commit(replace(order, identity=changed), is_kept=False)
        assert (answer.outcome, answer.code) == (Outcome.CONFLICT, "requestReused")

    # --- how it is asked -------------------------------------------------------------------------

    def look(self, read: Callable[[Snapshot], T]) -> T:
        """Read one moment of the database."""
        with self.bench.store.snapshot() as snapshot:
            return read(snapshot)

    def order_of(
        self, command: Command, permit: Permit | None = None, revision: int | None = None
    ) -> Order:
        """Return an order under an identity of its own, and with a token that is its own."""
        self.count += 1
        name = str(self.count).encode()
        fingerprint = hashlib.sha256(name).digest()
        identity: ClientIdentity | WorkerIdentity = self.bench.client(f"key-{self.count}")
        worker = self.workers.get(command.run_id)
        if permit is not None and worker is not None:
            identity = WorkerIdentity(worker, str(self.count), fingerprint)
        return self.bench.order(
            command,
            permit=permit,
            identity=identity,
            expected_revision=revision,
            token=name.rjust(32, b"0"),
        )

    def ask(self, command: Command, permit: Permit | None = None) -> Answer:
        """Commit one command."""
        return self.commit(self.order_of(command, permit))[0]

    def commit(self, *orders: Order, is_kept: bool = True) -> list[Answer]:
        """Commit orders in one group, hold each answer to its contract, and learn from it."""
        before = self.look(_image)
        results = self.bench.kernel.commit(orders, self.bench.clock.now_ms())
        answers = [result for result in results if isinstance(result, Answer)]
        assert len(answers) == len(orders), results
        for order, answer in zip(orders, answers, strict=True):
            if not _is_unfit(answer):
                assert (answer.error is not None) == (answer.outcome in _REFUSED)
            assert (answer.code is not None) == (answer.error is not None)
            # An answer that decides nothing is kept; nothing else that is refused leaves a trace.
            kept = {event.fact.type for event in answer.events} <= {"decision.submitted"}
            assert not answer.error or kept
            assert not invariants.doubled(answer)
            if is_kept and order.permit is not None and answer.error is None:
                assert order.permit == self.permits.get(order.commands[0].run_id)
            is_lost = answer.outcome is Outcome.CLAIM_LOST or answer.code == "staleRevision"
            is_stored = answer.outcome is not Outcome.CLAIM_LOST
            if isinstance(order.identity, WorkerIdentity):
                is_stored = not is_lost
            if is_stored and is_kept:
                self.sent.append((order, answer))
            self.learn(order, answer)
        if all(not answer.events for answer in answers):
            assert self.look(_image) == before
        return answers

    def learn(self, order: Order, answer: Answer) -> None:
        """Take in the claims and runs that an order made."""
        for event in answer.events:
            fact = event.fact
            if isinstance(fact, LeaseClaimed):
                assert order.claimant is not None
                assert fact.lease is not None
                permit = Permit(
                    event.resource_id,
                    "host",
                    order.claimant.owner_id,
                    order.claimant.token,
                    fact.lease.generation,
                )
                self.permits[fact.run_id] = permit
                self.spawn(fact.run_id, permit)
            elif fact.lease is not None and event.resource_id.startswith("run-"):
                held = {ids.resource_id("run", run_id): run_id for run_id in self.permits}
                run_id = held.get(event.resource_id)
                if run_id is not None:
                    self.lost.append(self.permits.pop(run_id))
        self.runs = [str(row[0]) for row in self.bench.dump("runs")]

    def spawn(self, run_id: str, permit: Permit) -> None:
        """Keep that a runner was launched, and that the one before it ended."""
        self.count += 1
        now_ms, earlier = self.bench.clock.now_ms(), self.workers.get(run_id)
        if earlier is not None:

            def end(tx: Transaction) -> None:
                volatile.worker_ended(tx, earlier, "crashed", now_ms)

            self.bench.kernel.commit((Chore(end),), now_ms)
        self.workers[run_id] = f"worker-{self.count}"
        self.bench.spawn(self.workers[run_id], permit, run_id)

    def launch_total(self, run_id: str) -> int:
        """Return how many steps a run had when its newest runner was launched."""
        worker = self.workers.get(run_id)
        rows = [row for row in self.bench.dump("run_workers") if row[0] == worker]
        return int(str(rows[0][5])) if rows else 0

    def due_order(self, data: st.DataObject) -> Order:
        """Return what is due for a run, or a repeated claim when nothing is."""
        run_id = data.draw(st.sampled_from(self.runs))
        now_ms = self.bench.clock.now_ms()
        command = self.look(
            lambda read: runner_move(
                read, run_id, now_ms, lambda of: data.draw(st.sampled_from(of))
            )
        )
        command = command or ClaimRun(run_id)
        return self.order_of(
            command, None if isinstance(command, ClaimRun) else self.permits.get(run_id)
        )

    def control_order(self, data: st.DataObject) -> Order:
        """Return a client's command on a run."""
        run_id = data.draw(st.sampled_from((*self.runs, "run-0")))
        revision = self.bench.revision(run_id) if run_id in self.runs else 3
        parent_revision = revision - data.draw(st.sampled_from((0, 0, 0, 1)))
        expected = data.draw(st.sampled_from((None, None, revision, revision - 1)))
        command = data.draw(
            st.sampled_from(
                (
                    PauseRun(run_id),
                    ResumeRun(run_id),
                    CancelRun(run_id),
                    RestartRun(run_id, parent_revision),
                )
            )
        )
        return self.order_of(command, revision=expected)

    def odd_order(self, data: st.DataObject) -> Order:
        """Return any command at all under any claim."""
        command = data.draw(odd_command(self.bench, self.runs))
        permits = [None, self.permits.get(command.run_id), *self.permits.values(), *self.lost]
        permit = data.draw(st.sampled_from(permits))
        if permit is not None:
            permit = data.draw(st.sampled_from((permit, permit, *_forged(permit))))
        return self.order_of(command, permit)

    # --- how a run goes on -----------------------------------------------------------------------

    def move(self, run_id: str, choose: Callable[[Sequence[int]], int]) -> bool:
        """Do what is due for a run; say whether there was anything."""
        now_ms = self.bench.clock.now_ms()
        command = self.look(lambda read: runner_move(read, run_id, now_ms, choose))
        if command is None:
            return False
        permit = None if isinstance(command, ClaimRun) else self.permits[run_id]
        answer = self.ask(command, permit)
        if answer.code == "expired":
            state = self.look(lambda read: run_state(read, run_id))
            assert state.expires_at is not None
            assert state.expires_at <= now_ms
            self.lose_runner(run_id, is_counted=False)
            return True
        assert answer.error is None, (command, answer.code, answer.error)
        return True

    def help(self, run_id: str, choose: Callable[[Sequence[int]], int]) -> bool:
        """Do what a person has to do for a run; say whether there was anything."""
        self.count += 1
        key = f"answer-{self.count}"
        now_ms = self.bench.clock.now_ms()
        command = self.look(lambda read: persons_move(read, run_id, key, choose, now_ms))
        if command is None:
            return False
        answer = self.ask(command)
        assert answer.error is None, (command, answer.code, answer.error)
        return True

    def lose_runner(self, run_id: str, *, is_counted: bool) -> None:
        """Say that a run's runner is gone."""
        total = self.launch_total(run_id)
        answer = self.ask(LoseRunner(run_id, total, counted=is_counted, detail="killed"))
        assert answer.error is None, answer.code

    # --- what holds ------------------------------------------------------------------------------

    @invariant()
    def nothing_is_violated(self) -> None:
        """No rule of the database is broken, and no run stands as none may."""
        with self.bench.store.snapshot() as read:
            found = verify(
                read, quick=True, scratch=lambda: create_scratch(None), projectors=route
            ).violations
            standing = invariants.faults(read)
        assert found == (), found
        assert standing == [], standing

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """What ended, settled or was said stays as it is."""
        after = self.look(invariants.lasting)
        assert invariants.forgotten(self.lasting, after) == {}
        self.lasting = after

    @invariant()
    def the_log_gives_the_rows(self) -> None:
        """Now and then the log is replayed."""
        self.steps += 1
        if self.steps % _STEPS_BETWEEN_REBUILDS == 0:
            assert_rebuilds(self.bench.store)

    def teardown(self) -> None:
        """Every run can still reach its end, and the log gives the rows of all of them."""
        try:
            self.bench.clock.advance_ms(_BACK_AGAIN_MS)
            for run_id in self.runs:
                self.end(run_id)
            self.nothing_is_violated()
            self.nothing_is_forgotten()
            assert_rebuilds(self.bench.store)
            self.bench.store.close()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def end(self, run_id: str) -> None:
        """Take a run to its end."""
        for _ in range(_MOVES_MAX):
            state = self.look(lambda read: run_state(read, run_id))
            if state.is_terminal:
                return
            if self.move(run_id, _last) or self.help(run_id, _last):
                continue
            assert state.queue_status == "queued", state
            self.bench.clock.advance_ms(max(1, state.available_at - self.bench.clock.now_ms()))
        raise AssertionError(f"{run_id} has no end")


def _last(of: Sequence[int]) -> int:
    """Choose the last number."""
    return of[-1]


def _is_unfit(answer: Answer) -> bool:
    """Whether a model's answer was kept and does not fit, which is no refusal of the command."""
    kept = {event.fact.type for event in answer.events} & {"request.submitted", "request.validated"}
    return answer.outcome is Outcome.REJECTED and bool(kept)


def _image(read: Snapshot) -> dict[str, list[tuple[object, ...]]]:
    """Return every row that the log gives."""
    return {name: list(read.each(plain, statement)) for name, statement in COMPARED.items()}


def _forged(permit: Permit) -> tuple[Permit, ...]:
    """Return claims that are almost this one."""
    return (
        replace(permit, token=b"x" * 32),
        replace(permit, owner_id="another-host"),
        replace(permit, generation=permit.generation + 1),
    )


# What the suite waits for; a soak takes as many as its profile says, and longer ones.
_IS_SOAK: Final = settings.get_current_profile_name() == "soak"
TestMachine = Machine.TestCase
TestMachine.settings = (
    settings(stateful_step_count=60)
    if _IS_SOAK
    else settings(max_examples=16, stateful_step_count=30)
)
