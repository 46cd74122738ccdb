"""A claimed run as this server holds it: its claim, its claims on effects, its clock, its end.

Only committed events change it; `note` is called for each of them, in the order of their commit,
before any reply leaves. Tokens stay here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import trio

from pi_workflows.base import ids
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted
from pi_workflows.domain.effect.events import EffectAttemptStarted, EffectEvent
from pi_workflows.domain.fact import Event, Stored
from pi_workflows.domain.run.events import RunCancelled, RunEvent, RunPaused
from pi_workflows.store.records import Permit

StopReason: TypeAlias = Literal["pause", "cancel"]


@dataclass(slots=True)
class Active:
    """The attempt whose active time runs.

    Attributes:
        attempt_id: The attempt.
        started_ns: Monotonic reading at which its start was committed.
        timeout_ms: Its budget; 0 is unlimited.
        interval_number: Its open interval.
        stopped_ns: Monotonic reading at which a pause stopped its time, if one did.
        is_sampled_last: Whether that was kept.
    """

    attempt_id: str
    started_ns: int
    timeout_ms: int
    interval_number: int = 1
    stopped_ns: int | None = None
    is_sampled_last: bool = False

    def elapsed_ns(self, now_ns: int) -> int:
        """Return the active time until now, or until the pause."""
        return (now_ns if self.stopped_ns is None else self.stopped_ns) - self.started_ns

    def left_ms(self, now_ns: int) -> int | None:
        """Return the milliseconds that the budget leaves, at least 0; None when it is unlimited."""
        if not self.timeout_ms:
            return None
        return max(0, self.timeout_ms - (now_ns - self.started_ns) // NS_PER_MS)


class HeldRun:
    """One run under a claim of this server.

    Attributes:
        run_id: The run.
        permit: The claim.
        revision: The run's revision after the claim.
        step_total: How many steps the run had then.
        expires_at_ms: Wall time at which the claim ends unless it is renewed.
        effects: The claims on effects under way, by effect ID.
        active: The attempt whose time runs, if one does.
        stop_reason: Why the runner must end, when somebody else paused or cancelled the run.
        is_leaving: A pause waits for the manual effect under way; only that is still settled.
        is_released: The claim has ended; nothing of this runner is accepted any more.
        news: Set at each change; a new event takes its place.
    """

    def __init__(self, run_id: str, permit: Permit, *, revision: int, expires_at_ms: int) -> None:
        """Hold a run that was just claimed."""
        self.run_id = run_id
        self.permit = permit
        self.revision = revision
        self.step_total = 0
        self.expires_at_ms = expires_at_ms
        self.effects: dict[str, Permit] = {}
        self.active: Active | None = None
        self.stop_reason: StopReason | None = None
        self.is_leaving = False
        self.is_released = False
        self.news = trio.Event()
        self._tokens: dict[str, bytes] = {}

    def effect_token(self, effect_id: str) -> bytes:
        """Return a fresh token for the claim that the next try of an effect makes."""
        token = self._tokens[effect_id] = ids.random_token()
        return token

    def renewed(self, expires_at_ms: int) -> None:
        """Note that the claim was renewed until then."""
        self.expires_at_ms = max(self.expires_at_ms, expires_at_ms)

    def changed(self) -> None:
        """Wake whoever waits for news."""
        self.news.set()
        self.news = trio.Event()

    def note(self, event: Stored, now_ns: int) -> None:
        """Take in a committed event of this run or of one of its effects.

        Args:
            event: The event.
            now_ns: Monotonic reading.
        """
        fact = event.fact
        match fact:
            case AttemptStarted():
                self.active = Active(
                    fact.attempt.attempt_id,
                    now_ns,
                    fact.attempt.timeout_ms or 0,
                    fact.interval.interval_number,
                )
            case EffectEvent():
                self._note_effect(event, fact)
            case RunEvent() | AttemptSettled():
                self._note_run(fact, now_ns)
            case _:
                return
        self.changed()

    def _note_effect(self, event: Stored, fact: EffectEvent) -> None:
        """Keep the claim of a try that began; forget that of one that ended."""
        effect_id = fact.effect.effect_id
        if isinstance(fact, EffectAttemptStarted) and fact.lease is not None:
            self.effects[effect_id] = Permit(
                resource_id=event.resource_id,
                owner_type="host",
                owner_id=self.permit.owner_id,
                token=self._tokens.pop(effect_id),
                generation=fact.lease.generation,
            )
        else:
            self.effects.pop(effect_id, None)

    def _note_run(self, fact: Event, now_ns: int) -> None:
        """Stop the clock, and note who ended the claim."""
        if isinstance(fact, RunEvent | AttemptSettled) and fact.attempt is not None:
            self.active = None
        if isinstance(fact, RunPaused):
            self.stop_reason = "pause"
            self.is_leaving = fact.lease is None
            if self.active is not None:
                self.active.stopped_ns = now_ns
        elif isinstance(fact, RunCancelled):
            self.stop_reason = "cancel"
        lease = fact.lease
        if lease is not None and lease.op == "released":
            self.is_released = True
            self.is_leaving = False
