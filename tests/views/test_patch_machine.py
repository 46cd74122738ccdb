"""Whatever is asked, in whatever order: a view and the patches since then are the view of now.

Hypothesis drives the kernel as in `tests.kernel.test_machine`; two readers that share no code, one
of the product and one of the tests, follow each run.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import VIEW_REVISIONS_KEPT
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.follow_up.queue import QueueFollowUp, RemoveFollowUp
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.state import open_attempt, pending_request, run_state
from pi_workflows.domain.session.capture import RecordEvents
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.views.facts import ProcessFacts, run_facts
from pi_workflows.views.run_patch import run_patch
from pi_workflows.views.run_view import run_view
from tests.kernel import preferring
from tests.kernel.harness import SESSION
from tests.kernel.recording import bind, complete, conversation, entries, failed
from tests.kernel.recovery import recover
from tests.kernel.test_machine import Machine
from tests.kernel.workflows import WORKFLOWS
from tests.views.following import Follower, decoded

PREFERRING: Final = "preferring"
PAIRS: Final = 8
CHAINS: Final = 2
FRAMES: Final = 6
# How often somebody looks between two moves.
LOOKS: Final = 0.04
# How often somebody else acts between two moves; of those who would cancel, how many do.
INTERFERED: Final = 0.12
CANCELLED: Final = 0.2
# How many of the runs mostly talk with a session.
TALKING: Final = 0.3
# How many commands a run has behind it: at times almost as many as patches are kept.
AGES: Final = (*[0] * 11, VIEW_REVISIONS_KEPT - 20)
_IS_SOAK: Final = settings.get_current_profile_name() == "soak"
COMMANDS_MIN: Final = 200_000 if _IS_SOAK else 5_000
# What hypothesis draws is the same in every batch; what happens in `work` is not.
EXAMPLES: Final = 8
BATCHES_MAX: Final = COMMANDS_MIN // 500
STEPS: Final = 30
# Of sessions that are captured: what a recorder sends, and how much at once.
RECORDS: Final = tuple(conversation(random.Random(4), 2_000))  # noqa: S311 - as below
BATCHES: Final = (1, 1, 3, 20, 250)
_DATA: Final = tuple(Blob.json({"label": "x" * size}) for size in (1, 400, 17_000))


@dataclass
class Tally:
    """What was done and checked.

    Attributes:
        commands: Orders that the kernel decided.
        pairs: Patches that were held to a view.
        chains: Followers that came over a revision in between.
        snapshots: Cursors for which there is no patch.
        events: The types of the events that were written.
        stale: The sections that a reader had to ask for again.
    """

    commands: int = 0
    pairs: int = 0
    chains: int = 0
    snapshots: int = 0
    events: set[str] = field(default_factory=set[str])
    stale: set[str] = field(default_factory=set[str])


@dataclass
class Recorder:
    """What captures the sessions of a run, one after the other.

    Attributes:
        run_id: The run.
        key: Names the capture that is open; None while none is.
        captures: How many there were.
        entries: Entries that were sent of it.
        events: Events that were sent of it.
        attempts: Those for which there was one.
    """

    run_id: str
    key: str | None = None
    captures: int = 0
    entries: int = 0
    events: int = 0
    attempts: set[str] = field(default_factory=set[str])

    def next(self, chance: random.Random, attempts: Sequence[str]) -> Command:
        """Return the next sending; what is captured may be the part of one of these attempts."""
        key = self.key
        if key is None:
            self.captures += 1
            self.key, self.entries, self.events = f"capture-{self.captures}", 0, 0
            unknown = sorted({*attempts} - self.attempts)
            if unknown and chance.random() < 0.5:
                self.key = chance.choice(unknown)
                self.attempts.add(self.key)
            return bind(self.run_id, self.key)
        fate, count = chance.random(), chance.choice(BATCHES)
        if fate < 0.2:
            self.key = None
            # What its events say became an entry has to be there when it is complete.
            if not self.entries or chance.random() < 0.5:
                return failed(self.run_id, key)
            return complete(self.entries, self.events, self.run_id, key)
        if fate < 0.5:
            first = self.entries + 1
            self.entries += count % 40
            text = "x" * chance.choice((1, 1, 90))
            return entries(range(first, self.entries + 1), self.run_id, key, text)
        batch = RECORDS[self.events : self.events + count]
        self.events += len(batch)
        return RecordEvents(self.run_id, key, batch)


class PatchMachine(Machine):
    """A database under clients, runners, crashes and a clock that jumps, with watchers."""

    tally = Tally()
    batch = 0

    def __init__(self) -> None:
        super().__init__()
        self.chance = random.Random(4)  # noqa: S311 - which revisions, not secrets
        self.views: dict[str, dict[int, bytes]] = {}
        self.chains: dict[str, list[Follower]] = {}
        self.changed: set[str] = set()
        self.recorders: dict[str, Recorder] = {}

    # --- what happens besides --------------------------------------------------------------------

    @initialize(name=st.sampled_from((PREFERRING, *sorted(WORKFLOWS))), age=st.sampled_from(AGES))
    def begin(self, name: str, age: int) -> None:
        """There is a run from the start, whose window of patches may be almost full."""
        if name == PREFERRING:
            self.prefer()
            return
        self.ask(self.bench.start("run-1", WORKFLOWS[name], session=SESSION))
        for number in range(age):
            self.bench.do(ResumeRun("run-1") if number % 2 else PauseRun("run-1"))

    @rule(data=st.data(), moves=st.integers(1, 40))
    def work(self, data: st.DataObject, moves: int) -> None:
        """Runners, the scheduler and people do what is due; when a run is over, the next starts."""
        drawn = data.draw(st.integers(0, 2**16))
        chance = random.Random(f"{self.batch} {drawn}")  # noqa: S311 - as above
        run_id = data.draw(st.sampled_from(self.runs[-3:]))
        for _ in range(moves):
            if chance.random() < LOOKS:
                self.patches_lead_to_the_view()
            if chance.random() < INTERFERED:
                self.interfere(run_id, chance)
            if self.move(run_id, chance.choice) or self.help(run_id, chance.choice):
                continue
            state = self.look(partial(run_state, run_id=run_id))
            if state.is_terminal:
                run_id = f"run-{len(self.runs) + 10}"
                name = "talk" if chance.random() < TALKING else chance.choice(sorted(WORKFLOWS))
                session = f"session-of-{run_id}" if chance.random() < 0.8 else None
                self.ask(self.bench.start(run_id, WORKFLOWS[name], session=session))
            else:
                self.bench.clock.advance_ms(max(1, state.available_at - self.bench.clock.now_ms()))

    @rule(data=st.data(), moves=st.integers(1, 40))
    def work_on(self, data: st.DataObject, moves: int) -> None:
        """As `work`: most of a run's life is this."""
        self.work(data, moves)

    @rule(data=st.data(), moves=st.integers(1, 40))
    def work_more(self, data: st.DataObject, moves: int) -> None:
        """As `work`."""
        self.work(data, moves)

    def prefer(self) -> None:
        """A run with settings is changed under its runner, and cancelled."""
        self.bench.heard = self.hear
        self.commit(preferring.outdated(self.bench), is_kept=False)
        self.bench.heard = None
        self.ask(CancelRun("run-1"))

    def hear(self, order: Order, answer: Answer) -> None:
        """Take in what was not committed by the machine itself."""
        self.tally.commands += 1
        self.learn(order, answer)
        self.note(answer)

    def interfere(self, run_id: str, chance: random.Random) -> None:
        """Queue a prompt behind a run, take one back, answer in somebody's place, or cancel it."""
        request = self.look(partial(pending_request, run_id=run_id))
        rows = self.bench.dump("workflow_follow_ups")
        queued = [str(row[0]) for row in rows if row[2] == run_id]
        is_decision = request is not None and request.kind == "decision"
        ways = ("answer",) if is_decision else ("queue", "remove", "answer", "cancel")
        match chance.choice(ways):
            case "remove" if queued:
                self.ask(RemoveFollowUp(run_id, queued[-1]))
            case "queue" | "remove":
                self.count += 1
                self.ask(QueueFollowUp(run_id, f"request-{self.count}", Blob.text("Go on.")))
            case "answer" if request is not None:
                self.count += 1
                key, value = f"presumed-{self.count}", Blob.json({"route": "a"})
                self.ask(AnswerCheckpoint(run_id, request.request_id, None, key, key, value))
            case "cancel" if chance.random() < CANCELLED:
                self.ask(CancelRun(run_id))
            case _:
                pass

    @rule(
        launches=st.integers(0, 3), code=st.sampled_from(("workflowSourceChanged", "importError"))
    )
    def misfortune(self, launches: int, code: str) -> None:
        """A run's source changed, or its runners die one after the other."""
        run_id = f"run-{len(self.runs) + 10}"
        self.ask(self.bench.start(run_id, WORKFLOWS["line"]))
        for _ in range(launches):
            self.move(run_id, _first)
            self.lose_runner(run_id, is_counted=True)
            self.bench.clock.advance_ms(10_000)
        if launches < 3:
            self.move(run_id, _first)
            self.ask(FailLaunch(run_id, Failure(code, "it is not as it was")))

    @rule(is_orderly=st.booleans(), first=st.integers(0, 4))
    def crash(self, is_orderly: bool, first: int) -> None:  # noqa: FBT001 - drawn
        """The server ends; the next one recovers, and may end itself in the middle of that."""
        (self.bench.store.close if is_orderly else self.bench.store.crash)()
        done: list[Answer] = []
        if first:
            done += recover(self.bench, commands_max=first - 1)
            self.bench.store.crash()
        done += recover(self.bench)
        self.lost.extend(self.permits.values())
        self.permits.clear()
        self.tally.commands += len(done)
        for answer in done:
            self.note(answer)

    def give_up(self) -> None:
        """See `misfortune`."""

    def renew(self) -> None:
        """No view shows it."""

    def sample(self) -> None:
        """No view shows it."""

    def reuse(self) -> None:
        """It changes nothing."""

    @rule(data=st.data(), size=st.sampled_from(_DATA), count=st.sampled_from((1, 12, 70)))
    def publish(self, data: st.DataObject, size: Blob, count: int) -> None:
        """A node tells its progress, several times in one proposal."""
        run_id = data.draw(st.sampled_from(self.runs))
        attempt = self.look(lambda read: open_attempt(read, run_id))
        permit = self.permits.get(run_id)
        if attempt is None or permit is None:
            return
        updates = [
            RecordUpdate(run_id, attempt.attempt_id, "progress", f"k{each % 20}", size)
            for each in range(count)
        ]
        self.tally.commands += 1
        answer = self.bench.answer(*updates, permit=permit)
        self.note(answer)

    @rule(data=st.data(), sendings=st.integers(1, 8))
    def record(self, data: st.DataObject, sendings: int) -> None:
        """A session of a run is captured, or a run whose end it outlives."""
        run_id = data.draw(st.sampled_from(self.runs))
        chance = random.Random(data.draw(st.integers(0, 2**16)))  # noqa: S311 - as above
        recorder = self.recorders.setdefault(run_id, Recorder(run_id))
        rows = self.bench.dump("node_attempts")
        attempts = [str(row[0]) for row in rows if row[1] == run_id]
        for _ in range(sendings):
            answer = self.ask(recorder.next(chance, attempts))
            assert answer.error is None, (answer.code, answer.error)

    def commit(self, *orders: Order, is_kept: bool = True) -> list[Answer]:
        """Commit orders in one group, and take in what came of them."""
        results = self.bench.kernel.commit(orders, self.bench.clock.now_ms())
        answers = [result for result in results if isinstance(result, Answer)]
        assert len(answers) == len(orders), results
        for order, answer in zip(orders, answers, strict=True):
            if is_kept and answer.error is None:
                self.sent.append((order, answer))
            self.learn(order, answer)
            self.note(answer)
        self.tally.commands += len(orders)
        return answers

    def note(self, answer: Answer) -> None:
        """Keep which runs changed, and how each of them looks now."""
        self.tally.events |= {event.fact.type for event in answer.events}
        self.changed |= set(answer.views)
        with self.bench.store.snapshot() as read:
            for run_id in answer.views:
                self.keep(read, run_id)

    # --- what holds ------------------------------------------------------------------------------

    def keep(self, read: Snapshot, run_id: str) -> None:
        """Remember how a run looks at its revision."""
        view = run_view(read, run_id, self.process())
        self.views.setdefault(run_id, {})[view.revision] = view.content

    def process(self) -> ProcessFacts:
        """Return what lives now: all runners, or none of them."""
        live = frozenset(self.permits) if self.chance.random() < 0.5 else frozenset[str]()
        return ProcessFacts(self.bench.clock.now_ms(), live)

    @invariant()
    def patches_lead_to_the_view(self) -> None:
        """From eight revisions, and over one in between, to those of now."""
        with self.bench.store.snapshot() as read:
            for run_id in sorted(self.changed):
                self.follow(read, run_id)
        self.changed.clear()

    def follow(self, read: Snapshot, run_id: str) -> None:
        """Hold a run's patches from everywhere to its view."""
        process = self.process()
        now = decoded(run_view(read, run_id, process).content)
        known = self.views[run_id]
        self.outside(read, run_id, now["revision"], process)
        for revision in self.chance.sample(sorted(known), min(PAIRS, len(known))):
            follower = self.led(read, Follower(known[revision]), process)
            if follower is not None:
                follower.hold(now)
                self.tally.pairs += 1
                self.tally.stale |= follower.mirror.stale
        self.chain(read, run_id, now, process)

    def led(self, read: Snapshot, follower: Follower, process: ProcessFacts) -> Follower | None:
        """Lead a follower to now; None when its revision is not retained any more."""
        patch = run_patch(read, follower.run_id, follower.revision, process)
        now = run_facts(read, follower.run_id).revision
        is_retained = follower.revision >= max(1, now - VIEW_REVISIONS_KEPT)
        assert (patch is not None) == is_retained
        if patch is None:
            self.tally.snapshots += 1
            return None
        assert (patch.from_revision, patch.to_revision) == (follower.revision, now)
        follower.take(patch.content)
        return follower

    def outside(self, read: Snapshot, run_id: str, now: int, process: ProcessFacts) -> None:
        """No patch begins where no reader can be."""
        for revision in {0, now + 1, now + 300, now - VIEW_REVISIONS_KEPT - 1, -1}:
            if not max(1, now - VIEW_REVISIONS_KEPT) <= revision <= now:
                assert run_patch(read, run_id, revision, process) is None, revision
                self.tally.snapshots += 1

    def chain(self, read: Snapshot, run_id: str, now: Any, process: ProcessFacts) -> None:
        """Lead one follower on that came here step by step: it is where a single step leads."""
        chains = self.chains.setdefault(run_id, [])
        if len(chains) < CHAINS:
            known = self.views[run_id]
            chains.append(Follower(known[self.chance.choice(sorted(known))]))
        follower = self.led(read, chains.pop(0), process)
        direct = follower and self.led(read, Follower(follower.origin), process)
        if follower is None or direct is None:
            return
        follower.hold(now)
        assert follower.state == direct.state
        if self.chance.random() < 0.5:
            follower.hear_again()
        self.tally.chains += len(follower.frames) > 1
        if len(follower.frames) < FRAMES:
            chains.append(follower)

    def nothing_is_violated(self) -> None:
        """As in the kernel's own machine, which looks for it."""

    def nothing_is_forgotten(self) -> None:
        """As above."""

    def the_log_gives_the_rows(self) -> None:
        """As above."""

    def teardown(self) -> None:
        """The database goes."""
        try:
            self.bench.store.close()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)


def _first(of: Sequence[int]) -> int:
    """Choose the first number."""
    return of[0]


@pytest.mark.slow
def test_patches_lead_from_any_view_to_any_later_one(
    record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever every writer did in between, for both readers, once or in several frames."""
    if Path("/dev/shm").is_dir():  # noqa: S108 - the directories in it are private and random
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")  # noqa: S108 - as above
    tally = PatchMachine.tally = Tally()
    PatchMachine.batch = 0
    # Pages of traces and of entries are shown up to their ends, so that they never are stale.
    stale, lacking = {"steps", "aggregates", "events"}, {*EVENTS}
    while tally.commands < COMMANDS_MIN or lacking:
        assert PatchMachine.batch < BATCHES_MAX, lacking
        run_state_machine_as_test(
            PatchMachine, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
        )
        PatchMachine.batch += 1
        lacking = (EVENTS.keys() - tally.events) | (stale - tally.stale)
    record_property("patches: commands", tally.commands)
    record_property("patches: pairs of views", tally.pairs)
    record_property("patches: chains", tally.chains)
    assert tally.stale == stale
