"""`effects` and `effect_attempts`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.effect.events import (
    EffectAttemptStarted,
    EffectClosed,
    EffectEvent,
    EffectReserved,
)
from pi_workflows.domain.fact import Stored

SQL: Final = load(__package__, "effects.sql")


def reserved(event: Stored, fact: EffectReserved, db: Projection) -> None:
    """Insert a new effect."""
    db.write(SQL["insert_effect"], **fact.effect.columns())


def tried(event: Stored, fact: EffectAttemptStarted, db: Projection) -> None:
    """Begin a numbered try."""
    changed(event, fact, db)
    db.write(SQL["insert_try"], **fact.attempt.columns())


def closed(event: Stored, fact: EffectClosed, db: Projection) -> None:
    """Change an effect and end its open try."""
    changed(event, fact, db)
    if fact.attempt is not None:
        db.write(SQL["finish_try"], **fact.attempt.columns())


def changed(event: Stored, fact: EffectEvent, db: Projection) -> None:
    """Set the changed columns of an effect."""
    db.write(SQL["change_effect"], at_ms=event.at_ms, **fact.effect.columns())
