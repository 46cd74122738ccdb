"""`workflow_updates`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.attempt.events import UpdateRecorded
from pi_workflows.domain.fact import Stored

SQL: Final = load(__package__, "updates.sql")


def recorded(event: Stored, fact: UpdateRecorded, db: Projection) -> None:
    """Insert progress; earlier accounts under the same key stay as history."""
    db.write(SQL["insert_update"], **fact.update.columns())
