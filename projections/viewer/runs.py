"""`viewer_runs`: one presentation revision for each command that a viewer of the run can see."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.limits import VIEW_REVISIONS_KEPT
from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import ViewRef

SQL: Final = load(__package__, "runs.sql")


def advanced(view: ViewRef, at_ms: int, db: Projection) -> None:
    """Advance the cursor of the run that one command changed.

    Args:
        view: The run and its new presentation revision.
        at_ms: When the command was decided.
        db: The projection.

    Raises:
        AssertionError: The revision is not the next one.
    """
    db.write(
        SQL["advance"],
        run_id=view.run_id,
        revision=view.revision,
        floor=max(1, view.revision - VIEW_REVISIONS_KEPT + 1),
        at_ms=at_ms,
    )
