"""`viewer_deltas`: what each presentation revision changed in a run's view, as ordered patches.

Patches are made of the records that the command changed, never by comparing views (the client
protocol, section 7).
"""

from __future__ import annotations

from typing import Final

from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import VIEW_REVISIONS_KEPT
from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import Stored, ViewRef
from projections.viewer.change import Change
from projections.viewer.patches import deltas_of

SQL: Final = load(__package__, "deltas.sql")


def recorded(view: ViewRef, events: tuple[Stored, ...], db: Projection) -> None:
    """Store the patches of one command, and let those go that nobody may continue from.

    The first revision is where every reader begins: it has no patches.

    Args:
        view: The run and its new presentation revision; its other rows are as the command left
            them.
        events: The command's events that carry it, in order; at least one.
        db: The projection.
    """
    if view.revision == 1:
        return
    change = Change.of(view.run_id, events)
    at_ms = events[-1].at_ms
    for index, delta in enumerate(deltas_of(change, db)):
        patch = Blob.json(delta.patch)
        db.keep(patch, at_ms)
        db.write(
            SQL["insert_delta"],
            run_id=view.run_id,
            revision=view.revision,
            delta_index=index,
            target_type=delta.target_type,
            target_key=delta.target_key,
            patch_hash=patch.digest,
            at_ms=at_ms,
        )
    floor = view.revision - VIEW_REVISIONS_KEPT + 1
    if floor > 1:
        db.write_any(SQL["trim"], run_id=view.run_id, floor=floor)
