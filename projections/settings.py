"""`workflow_settings` and `workflow_setting_changes`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.settings.events import RunSettingsOpened, SettingsChanged

SQL: Final = load(__package__, "settings.sql")


def opened(event: Stored, fact: RunSettingsOpened, db: Projection) -> None:
    """Insert a workflow's settings; their resource is there already."""
    db.write(SQL["insert_scope"], **fact.settings.columns())


def changed(event: Stored, fact: SettingsChanged, db: Projection) -> None:
    """Insert a change and give its settings the new value."""
    change = fact.change
    db.write(
        SQL["insert_change"],
        actor_type=event.actor_type,
        actor_id=event.actor_id,
        **change.columns(),
    )
    db.write(
        SQL["change_scope"],
        scope_id=change.scope_id,
        before_hash=change.before_hash,
        after_hash=change.after_hash,
        at_ms=event.at_ms,
    )
