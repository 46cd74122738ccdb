"""The turns of Pi sessions and the active time of their steps, on the monotonic clock.

The engine contract, "Budget": a step's time runs only in a reported turn of a connected session
that is not paused. Nothing here decides: each change is a command, and only committed events change
what is held here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from pi_workflows.base import ids
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import Unavailable
from pi_workflows.base.limits import ACTIVE_SAMPLE_MS, TERMINAL_RETAINED_MS, TERMINAL_TURN_MS
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS
from pi_workflows.domain.attempt.events import AttemptSettled, IntervalOpened
from pi_workflows.domain.fact import Actor, Command, Event
from pi_workflows.domain.message.events import TurnStarted, TurnStopped
from pi_workflows.domain.message.recovery import StopRecovery
from pi_workflows.domain.message.turn import ResumeClock, SuspendClock
from pi_workflows.domain.request.closing import ExpireRequest
from pi_workflows.domain.rows import ClosedInterval
from pi_workflows.domain.run.events import RunEvent
from pi_workflows.kernel.order import Answer, Chore, Order
from pi_workflows.server.coordinators import Coordinators
from pi_workflows.server.log import ServerLog
from pi_workflows.server.writer import Writer
from pi_workflows.store import volatile
from pi_workflows.store.database import Store
from pi_workflows.store.transaction import Transaction
from pi_workflows.views.turns import OpenClock, open_clock, open_turns

_TRY_AGAIN_MS: Final = 1_000
# A little more, as the view judges by the wall clock.
_RETAINED_NS: Final = (TERMINAL_RETAINED_MS + 100) * NS_PER_MS


@dataclass(slots=True, eq=False)
class _Turn:
    """A turn that is open.

    Attributes:
        turn_id: The turn.
        message_id: What it works for.
        run_id: The message's run.
        is_recovery: Whether it looks at the run's end, within a budget of its own.
        active_ns: Its active time until `since_ns`.
        since_ns: Monotonic reading since which its session is there; None when it is not.
        is_stopped: Whether its budget has been found to be over.
    """

    turn_id: str
    message_id: str
    run_id: str
    is_recovery: bool
    active_ns: int = 0
    since_ns: int | None = None
    is_stopped: bool = False

    def elapsed_ms(self, now_ns: int) -> int:
        """Return its active time until now."""
        running_ns = 0 if self.since_ns is None else now_ns - self.since_ns
        return (self.active_ns + running_ns) // NS_PER_MS


@dataclass(slots=True, eq=False)
class _Step:
    """An active interval that is open.

    Attributes:
        clock: Its attempt, its number and the attempt's budget.
        started_ns: Monotonic reading at which it began.
    """

    clock: OpenClock
    started_ns: int

    def elapsed_ms(self, now_ns: int) -> int:
        """Return its time until now."""
        return (now_ns - self.started_ns) // NS_PER_MS

    def left_ms(self, now_ns: int) -> int | None:
        """Return what is left of the budget; None when it is unlimited."""
        if not self.clock.timeout_ms:
            return None
        return self.clock.timeout_ms - self.clock.spent_ms - self.elapsed_ms(now_ns)


class Turns:
    """The open turns of all sessions.

    Args:
        coordinators: Which sessions are there.
        writer: Where commands and samples go.
        store: What is read of a turn that goes on.
        clock: Monotonic time.
        log: Told when a command cannot be stored.
        host_id: This server.
        changed: Called, without blocking, with a run whose session began or ceased to work.
        session_due: Called, without blocking, with a session that shows an ended run no longer.
    """

    def __init__(
        self,
        *,
        coordinators: Coordinators,
        writer: Writer,
        store: Store,
        clock: Clock,
        log: ServerLog,
        host_id: str,
        changed: Callable[[str], None],
        session_due: Callable[[str], None],
    ) -> None:
        self._coordinators = coordinators
        self._writer = writer
        self._store = store
        self._clock = clock
        self._log = log
        self._actor = Actor("system", host_id)
        self._changed = changed
        self._session_due = session_due
        self._retained_until_ns: dict[str, int] = {}
        self._turns: dict[str, _Turn] = {}
        self._steps: dict[str, _Step] = {}
        self._wake = trio.Event()
        self._sample_due_ns = 0

    def load(self) -> None:
        """Take over the turns that an earlier server left open; their sessions are not there."""
        with self._store.snapshot() as read:
            for row in open_turns(read):
                self._turns[row.session_id] = _Turn(
                    row.turn_id,
                    row.message_id,
                    row.run_id,
                    is_recovery=row.kind == "terminal",
                    active_ns=row.active_elapsed_ms * NS_PER_MS,
                )

    def elapsed_ms(self, run_id: str) -> int:
        """Return the active time of a run's open interval in its session; 0 without one."""
        step = self._steps.get(run_id)
        return 0 if step is None else step.elapsed_ms(self._clock.monotonic_ns())

    def turn_ms(self, session_id: str) -> int:
        """Return the active time of a session's open turn; 0 without one."""
        turn = self._turns.get(session_id)
        return 0 if turn is None else turn.elapsed_ms(self._clock.monotonic_ns())

    def run_of(self, session_id: str) -> str | None:
        """Return the run that a session's open turn works for; None without one."""
        turn = self._turns.get(session_id)
        return None if turn is None else turn.run_id

    def session_changed(self, session_id: str) -> None:
        """Note that a session came, went, or began or ceased to work."""
        turn = self._turns.get(session_id)
        if turn is not None:
            self._changed(turn.run_id)
            self._wake.set()

    def observe(self, answers: Sequence[Answer]) -> None:
        """Take in what was committed. The writer calls it before any reply leaves."""
        for answer in answers:
            for event in answer.events:
                self._note(event.fact)

    def _note(self, fact: Event) -> None:
        """Take in one committed event."""
        match fact:
            case TurnStarted(turn=row):
                self._turns[row.target_session_id] = _Turn(
                    row.workflow_turn_id,
                    row.workflow_message_id,
                    row.run_id,
                    is_recovery=self._is_recovery(row.workflow_message_id),
                    since_ns=self._clock.monotonic_ns(),
                )
                self._coordinators.works(row.target_session_id, is_working=True)
                self._wake.set()
            case TurnStopped():
                self._forget(fact.turn.workflow_turn_id)
            case IntervalOpened():
                self._begin(fact)
            case RunEvent() | AttemptSettled():
                self._end(fact.run_id, fact.interval)
            case _:
                return

    def _is_recovery(self, message_id: str) -> bool:
        """Whether a message tells a run's end."""
        with self._store.snapshot() as read:
            return any(
                row.message_id == message_id and row.kind == "terminal" for row in open_turns(read)
            )

    def _begin(self, fact: IntervalOpened) -> None:
        """Let the time of a step run."""
        with self._store.snapshot() as read:
            clock = open_clock(read, fact.run_id)
        if clock is not None:
            self._steps[fact.run_id] = _Step(clock, self._clock.monotonic_ns())
            self._wake.set()

    def _end(self, run_id: str, interval: ClosedInterval | None) -> None:
        """Note that the time of a step stands."""
        step = self._steps.get(run_id)
        if step is None or interval is None:
            return
        if interval.attempt_id == step.clock.attempt_id:
            del self._steps[run_id]

    def _forget(self, turn_id: str) -> None:
        """Forget a turn that is over."""
        for session_id, turn in tuple(self._turns.items()):
            if turn.turn_id == turn_id:
                del self._turns[session_id]
                if turn.is_recovery:
                    now_ns = self._clock.monotonic_ns()
                    self._retained_until_ns[session_id] = now_ns + _RETAINED_NS
                    self._wake.set()
                self._coordinators.works(session_id, is_working=False)

    async def run(self) -> None:
        """Stop and start clocks, sample them, and notice budgets that are over, until cancelled."""
        self._sample_due_ns = self._clock.monotonic_ns() + ACTIVE_SAMPLE_MS * NS_PER_MS
        while True:
            self._wake = wake = trio.Event()
            try:
                await self._act()
            except Unavailable as error:
                self._log.limited("turn.unavailable", code=error.reason_code)
                await trio.sleep(_TRY_AGAIN_MS / MS_PER_SECOND)
                continue
            with trio.move_on_after(self._seconds_left()):
                await wake.wait()

    def _seconds_left(self) -> float:
        """Return how long nothing has to be done unless somebody says so."""
        now_ns = self._clock.monotonic_ns()
        left_ms: list[float] = [
            max(0, until_ns - now_ns) / NS_PER_MS for until_ns in self._retained_until_ns.values()
        ]
        if self._turns or self._steps:
            left_ms.append(max(0, (self._sample_due_ns - now_ns) // NS_PER_MS + 1))
        for step in self._steps.values():
            left = step.left_ms(now_ns)
            if left is not None:
                left_ms.append(max(0, left))
        return min(left_ms, default=float("inf")) / MS_PER_SECOND

    async def _act(self) -> None:
        """Do what is due now."""
        for session_id, turn in tuple(self._turns.items()):
            is_there = self._coordinators.is_there(session_id)
            if is_there and turn.since_ns is None:
                turn.since_ns = self._clock.monotonic_ns()
                await self._order("turn.resume", ResumeClock(turn.run_id, turn.turn_id))
            elif not is_there and turn.since_ns is not None:
                turn.active_ns = turn.elapsed_ms(self._clock.monotonic_ns()) * NS_PER_MS
                turn.since_ns = None
                await self._suspend(turn.run_id)
        await self._expire()
        self._let_go()
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._sample_due_ns:
            self._sample_due_ns = now_ns + ACTIVE_SAMPLE_MS * NS_PER_MS
            if self._turns or self._steps:
                await self._writer.submit(Chore(self._sample))

    def _let_go(self) -> None:
        """Say which sessions show an ended run no longer."""
        now_ns = self._clock.monotonic_ns()
        for session_id, until_ns in tuple(self._retained_until_ns.items()):
            if now_ns >= until_ns:
                del self._retained_until_ns[session_id]
                self._session_due(session_id)

    async def _suspend(self, run_id: str) -> None:
        """Stop the clock of a run whose session is gone."""
        step = self._steps.get(run_id)
        if step is not None:
            elapsed_ms = step.elapsed_ms(self._clock.monotonic_ns())
            await self._order(
                "turn.suspend",
                SuspendClock(run_id, step.clock.attempt_id, elapsed_ms, "disconnected"),
            )

    async def _expire(self) -> None:
        """Say which budgets are over."""
        now_ns = self._clock.monotonic_ns()
        for run_id, step in tuple(self._steps.items()):
            left_ms = step.left_ms(now_ns)
            if left_ms is not None and left_ms <= 0:
                command = ExpireRequest(run_id, step.clock.request_id, step.elapsed_ms(now_ns))
                await self._order("request.expire", command)
        for turn in tuple(self._turns.values()):
            is_over = turn.elapsed_ms(now_ns) >= TERMINAL_TURN_MS
            if turn.is_recovery and is_over and not turn.is_stopped:
                turn.is_stopped = True
                stop = StopRecovery(turn.run_id, turn.message_id, "timed_out")
                await self._order("recovery.stop", stop)

    def _sample(self, tx: Transaction) -> None:
        """Keep how long each turn and each interval has been active."""
        now_ms, now_ns = self._clock.now_ms(), self._clock.monotonic_ns()
        for step in self._steps.values():
            volatile.sample_active_time(
                tx,
                step.clock.attempt_id,
                step.clock.interval_number,
                observed_at_ms=now_ms,
                elapsed_ms=step.elapsed_ms(now_ns),
            )
        for turn in self._turns.values():
            volatile.sample_turn(tx, turn.turn_id, turn.elapsed_ms(now_ns))

    async def _order(self, name: str, command: Command) -> None:
        """Decide one command of this clockwork; what became impossible meanwhile is no matter."""
        await self._writer.submit(
            Order(
                name=name,
                commands=(command,),
                actor=self._actor,
                command_id=ids.random_id("command"),
                run_id=command.run_id,
            )
        )
