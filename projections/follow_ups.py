"""`workflow_follow_ups`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.follow_up.events import FollowUpEnded, FollowUpQueued

SQL: Final = load(__package__, "follow_ups.sql")


def queued(event: Stored, fact: FollowUpQueued, db: Projection) -> None:
    """Insert a prompt that waits."""
    db.write(
        SQL["insert_follow_up"],
        actor_type=event.actor_type,
        actor_id=event.actor_id,
        **fact.follow_up.columns(),
    )


def ended(event: Stored, fact: FollowUpEnded, db: Projection) -> None:
    """Let a prompt wait no more."""
    db.write(SQL["end_follow_up"], at_ms=event.at_ms, **fact.follow_up.columns())
