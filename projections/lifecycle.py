"""`resources` and `leases`.

The first projector of every event, run just before the event's own row is appended.
"""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.settings.events import RunSettingsOpened

SQL: Final = load(__package__, "lifecycle.sql")


def raise_revision(event: Stored, db: Projection) -> None:
    """Create the event's resource, or raise its revision by exactly one; then move its lease.

    Args:
        event: The event about to be appended.
        db: The projection.

    Raises:
        AssertionError: The revision or the generation is not the next one.
    """
    if event.fact.resource is not None:
        assert event.revision == 1, "only a resource's first event names it"
        db.write(
            SQL["create_resource"],
            resource_id=event.resource_id,
            resource_type=event.fact.resource.type,
            aggregate_key=event.fact.resource.key,
            at_ms=event.at_ms,
        )
        db.write(SQL["create_lease"], resource_id=event.resource_id)
    else:
        db.write(
            SQL["raise_revision"],
            resource_id=event.resource_id,
            revision=event.revision,
            at_ms=event.at_ms,
        )
    lease = event.fact.lease
    if lease is None:
        return
    statement = SQL["claim"] if lease.op == "claimed" else SQL["release"]
    db.write(statement, resource_id=event.resource_id, generation=lease.generation)


def settings_opened(event: Stored, fact: RunSettingsOpened, db: Projection) -> None:
    """Create the resource of a workflow's settings at revision 0: their changes are counted.

    The event is its run's; settings have none of their own before they change.

    Args:
        event: The event.
        fact: What it says.
        db: The projection.
    """
    db.write(
        SQL["create_settings"],
        resource_id=fact.settings.resource_id,
        aggregate_key=fact.settings.scope_id,
        at_ms=event.at_ms,
    )
    db.write(SQL["create_lease"], resource_id=fact.settings.resource_id)
