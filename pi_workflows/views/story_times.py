"""Where a run's time went: one phase for every moment, and the active time that was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted, UpdateRecorded
from pi_workflows.domain.fact import Event
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.rows import ClosedInterval, QueueStatus
from pi_workflows.domain.run.events import (
    InteractionEvent,
    LeaseClaimed,
    LeaseReleased,
    RunEffectAmbiguous,
    RunEnded,
    RunEvent,
    RunQueued,
    RunRequeued,
    RunResumed,
    RunStarted,
    RunWaiting,
    RunWorkerNoProgress,
)

SERVER_LOST: Final = "serverLost"
"""Why a starting server ends the claim of the one before it."""

RETRY: Final = "retry"
"""Why a runner lets a run wait until a retry is due."""

DELAY: Final = "delay"
"""Why it lets a run wait that an edge holds for some time."""

EFFECT_RESOLVED: Final = "effect "
"""How the reason begins with which a run goes on after a person settled an effect."""

_Phase: TypeAlias = Literal["held", "queued", "delayed", "waiting", "paused", "parked"]
_HELD: Final = frozenset({"starting", "running"})
_ALIVE: Final = (
    LeaseClaimed,
    RunStarted,
    RunResumed,
    AttemptStarted,
    AttemptSettled,
    UpdateRecorded,
)


@dataclass(frozen=True, slots=True)
class Totals:
    """Where a run's time went, in milliseconds.

    Wall time goes from the first event to the run's end, or to its newest event. It runs as the
    events tell: one whose clock had been set back adds nothing. Every moment of it belongs to one
    phase, and active time was measured apart by a clock that nobody sets, so that

        wall = active + between + queued + delayed + waiting + paused + parked + interrupted
               - excess

    and either `between` or `excess` is 0.

    Attributes:
        wall_ms: From the first event to the end.
        active_ms: A runner or a session worked on a node: the closed active intervals of all
            attempts.
        between_ms: A runner had the run without that: it started, or was between two nodes.
        queued_ms: It waited for a free runner.
        delayed_ms: A retry, or a new runner after a lost one, was not due yet.
        waiting_ms: It waited for an answer, and no session worked on one.
        paused_ms: It was paused.
        parked_ms: It stood still because of an error, until a person acted.
        interrupted_ms: Its runner was gone and nobody had noticed: from the last sign of life to
            the event that says so, a stopped server's time included.
        excess_ms: By how much more active time was measured than the wall clock had.
    """

    wall_ms: int = 0
    active_ms: int = 0
    between_ms: int = 0
    queued_ms: int = 0
    delayed_ms: int = 0
    waiting_ms: int = 0
    paused_ms: int = 0
    parked_ms: int = 0
    interrupted_ms: int = 0
    excess_ms: int = 0

    def document(self) -> dict[str, Json]:
        """Return the totals as documents have them."""
        return {
            "wallMs": self.wall_ms,
            "activeMs": self.active_ms,
            "betweenMs": self.between_ms,
            "queuedMs": self.queued_ms,
            "delayedMs": self.delayed_ms,
            "waitingMs": self.waiting_ms,
            "pausedMs": self.paused_ms,
            "parkedMs": self.parked_ms,
            "interruptedMs": self.interrupted_ms,
            "excessMs": self.excess_ms,
        }


class Timeline:
    """Takes in the events of a run's own resource, in order, and says where its time went."""

    def __init__(self) -> None:
        self._begun_ms: int | None = None
        self._now_ms = 0
        self._spent: dict[_Phase, int] = {}
        self._active_ms = 0
        self._session_ms = 0
        self._interrupted_ms = 0
        self._queue: QueueStatus = "queued"
        self._available_ms = 0
        self._is_paused = False
        self._is_asking = False
        self._is_ended = False
        self._is_server_lost = False
        self._alive_ms = 0
        self._stretches: list[tuple[int, int]] = []

    def take(self, at_ms: int, fact: Event) -> None:
        """Take in the next event.

        Args:
            at_ms: When it was recorded.
            fact: The event.
        """
        if self._is_ended:
            return
        if self._begun_ms is None:
            self._begun_ms = self._now_ms = at_ms
        self._pass(max(self._now_ms, at_ms))
        interval = _interval(fact)
        if interval is not None:
            self._active_ms += interval.elapsed_ms
            if not self._is_held:
                self._session_ms += interval.elapsed_ms
        if self._is_held and self._is_loss(fact):
            self._lose(interval)
        self._learn(fact)

    def totals(self) -> Totals:
        """Return where the time went until now."""
        spent = self._spent
        waiting_ms = spent.get("waiting", 0) - self._session_ms
        runner_ms = self._active_ms - self._session_ms
        # What a session is measured to have worked beyond its run's waiting is told with the rest.
        idle_ms = spent.get("held", 0) - self._interrupted_ms - runner_ms + min(0, waiting_ms)
        return Totals(
            wall_ms=self._now_ms - (self._begun_ms or 0),
            active_ms=self._active_ms,
            between_ms=max(0, idle_ms),
            queued_ms=spent.get("queued", 0),
            delayed_ms=spent.get("delayed", 0),
            waiting_ms=max(0, waiting_ms),
            paused_ms=spent.get("paused", 0),
            parked_ms=spent.get("parked", 0),
            interrupted_ms=self._interrupted_ms,
            excess_ms=max(0, -idle_ms),
        )

    @property
    def _is_held(self) -> bool:
        """Whether a runner has the run."""
        return self._queue in _HELD

    def _pass(self, at_ms: int) -> None:
        """Let the time until an event go into the phases that it belongs to."""
        for phase, until_ms in self._phases(at_ms):
            self._spent[phase] = self._spent.get(phase, 0) + until_ms - self._now_ms
            if phase == "held":
                self._stretches.append((self._now_ms, until_ms))
            self._now_ms = until_ms

    def _phases(self, at_ms: int) -> Iterator[tuple[_Phase, int]]:
        """Yield the phases until a moment, each with its end."""
        if self._is_held:
            yield "held", at_ms
        elif self._is_paused:
            yield "paused", at_ms
        elif self._queue == "queued":
            yield "delayed", min(at_ms, max(self._now_ms, self._available_ms))
            yield "queued", at_ms
        else:
            yield "waiting" if self._is_asking else "parked", at_ms

    def _is_loss(self, fact: Event) -> bool:
        """Whether an event says that the runner is gone, though nobody had told it to leave."""
        if isinstance(fact, LeaseReleased) and fact.reason == SERVER_LOST:
            return False
        if self._is_server_lost:
            return True
        if isinstance(fact, RunRequeued):
            return fact.reason not in (RETRY, DELAY)
        return isinstance(fact, RunWorkerNoProgress | RunEffectAmbiguous)

    def _lose(self, interval: ClosedInterval | None) -> None:
        """Count what passed since the runner's last sign of life."""
        since_ms = self._alive_ms
        if interval is not None:
            since_ms = max(since_ms, interval.ended_at)
        self._interrupted_ms += sum(
            max(0, end_ms - max(start_ms, since_ms)) for start_ms, end_ms in self._stretches
        )

    def _learn(self, fact: Event) -> None:
        """Take over how the run stands after an event."""
        if isinstance(fact, LeaseClaimed):
            self._stretches.clear()
        if isinstance(fact, _ALIVE):
            self._alive_ms = self._now_ms
        self._is_server_lost = isinstance(fact, LeaseReleased) and fact.reason == SERVER_LOST
        if isinstance(fact, RunWaiting):
            self._is_asking = True
        elif isinstance(fact, RequestSubmitted | InteractionEvent) and fact.request is not None:
            self._is_asking = fact.request.status == "pending"
        elif isinstance(fact, RunQueued):
            self._available_ms = fact.queue.available_at
        if not isinstance(fact, RunEvent):
            return
        if fact.queue is not None:
            self._queue, self._available_ms = fact.queue.status, fact.queue.available_at
        if fact.run is not None:
            self._is_paused = fact.run.paused == 1
        self._is_ended = isinstance(fact, RunEnded)


def _interval(fact: Event) -> ClosedInterval | None:
    """Return the active interval that an event closes."""
    return fact.interval if isinstance(fact, RunEvent | AttemptSettled) else None
