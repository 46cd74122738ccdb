"""`workflow_messages` and `workflow_turns`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.message.events import (
    MessageChanged,
    MessageCreated,
    TurnStarted,
    TurnStopped,
)

SQL: Final = load(__package__, "messages.sql")


def created(event: Stored, fact: MessageCreated, db: Projection) -> None:
    """Insert a message."""
    db.write(SQL["insert_message"], **fact.message.columns())


def changed(event: Stored, fact: MessageChanged, db: Projection) -> None:
    """Set the changed columns of a message."""
    db.write(SQL["change_message"], at_ms=event.at_ms, **fact.message.columns())


def turn_started(event: Stored, fact: TurnStarted, db: Projection) -> None:
    """Insert a turn."""
    db.write(SQL["insert_turn"], **fact.turn.columns())


def turn_ended(event: Stored, fact: TurnStopped, db: Projection) -> None:
    """End an open turn, and set what its end changed in its message."""
    db.write(SQL["end_turn"], **fact.turn.columns())
    if fact.message is not None:
        db.write(SQL["change_message"], at_ms=event.at_ms, **fact.message.columns())
