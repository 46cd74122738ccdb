"""Facts about effects. Each belongs to the effect's own resource."""

from __future__ import annotations

from typing import ClassVar, Literal

from pi_workflows.domain.fact import Event
from pi_workflows.domain.rows import EffectChange, EffectRow, TryFinished, TryStarted


class EffectReserved(Event):
    """An effect got its identity before anything was done."""

    type: ClassVar[str] = "effect.reserved"

    effect: EffectRow
    request_hash: str | None = None


class EffectEvent(Event):
    """What every later event of an effect may change."""

    effect: EffectChange


class EffectAttemptStarted(EffectEvent):
    """A numbered try began; what it does outside may happen from now on."""

    type: ClassVar[str] = "effect.attempt_started"

    attempt: TryStarted


class EffectClosed(EffectEvent):
    """An event that also ends the open try, when there is one."""

    attempt: TryFinished | None = None


class EffectAttemptFinished(EffectClosed):
    """A try ended without a result and may be repeated."""

    type: ClassVar[str] = "effect.attempt_finished"


class EffectApplied(EffectClosed):
    """The effect happened; its result is stored."""

    type: ClassVar[str] = "effect.applied"


class EffectRejected(EffectClosed):
    """The effect was refused and did not happen."""

    type: ClassVar[str] = "effect.rejected"


class EffectAmbiguous(EffectClosed):
    """Nobody knows whether the effect happened."""

    type: ClassVar[str] = "effect.ambiguous"


class EffectCancelled(EffectClosed):
    """The effect is no longer wanted."""

    type: ClassVar[str] = "effect.cancelled"


class EffectRetryScheduled(EffectEvent):
    """An effect without a result is tried again, but not yet: its run waits until then."""

    type: ClassVar[str] = "effect.retry_scheduled"


class EffectRecovered(EffectEvent):
    """A person said what became of an ambiguous effect, and why they believe it."""

    type: ClassVar[str] = "effect.recovered"

    action: Literal["confirm", "retry", "reject"]
    evidence_hash: str
