"""`projects`, `workflow_definitions`, `runs`, `run_sources`, `run_bindings`, `run_queue`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.run.events import RunEvent, RunQueued

SQL: Final = load(__package__, "runs.sql")


def queued(event: Stored, fact: RunQueued, db: Projection) -> None:
    """Insert a new run with everything that it starts from."""
    db.write_any(SQL["adopt_project"], **fact.project.columns())
    db.write_any(SQL["adopt_definition"], **fact.definition.columns())
    db.write(SQL["insert_run"], **fact.run.columns())
    for source in fact.sources:
        db.write(SQL["insert_source"], **source.columns())
    db.write(SQL["insert_binding"], **fact.binding.columns())
    db.write(SQL["insert_queue"], **fact.queue.columns())


def changed(event: Stored, fact: RunEvent, db: Projection) -> None:
    """Set the changed columns of the run and of its place in the queue."""
    if fact.run is not None:
        db.write(SQL["change_run"], run_id=fact.run_id, at_ms=event.at_ms, **fact.run.columns())
    if fact.queue is not None:
        db.write(SQL["change_queue"], run_id=fact.run_id, at_ms=event.at_ms, **fact.queue.columns())
