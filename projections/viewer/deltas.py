"""`viewer_deltas`: what each presentation revision changed in a run's view, as ordered patches.

Patches are made of the records that the command changed, never by comparing views (the client
protocol, section 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import VIEW_REVISIONS_KEPT
from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.fact import ViewRef
from projections.viewer.change import Change
from projections.viewer.patches import Delta, deltas_of

SQL: Final = load(__package__, "deltas.sql")


def recorded(view: ViewRef, change: Change, at_ms: int, db: Projection) -> None:
    """Store the patches of one command, and let those go that nobody may continue from.

    The first revision is where every reader begins: it has no patches.

    Args:
        view: The run and its new presentation revision; its other rows are as the command left
            them.
        change: What the command changed.
        at_ms: When it was decided.
        db: The projection.
    """
    if view.revision == 1:
        return
    deltas = tuple(deltas_of(change, db))
    stored = _inserted(view, deltas, at_ms, db)
    if stored < len(deltas):
        for delta in deltas:
            db.keep(delta.patch, at_ms)
        stored += _inserted(view, deltas, at_ms, db)
    assert stored == len(deltas), f"revision {view.revision} has patches already"
    floor = view.revision - VIEW_REVISIONS_KEPT + 1
    if floor > 1:
        db.write_any(SQL["trim"], run_id=view.run_id, floor=floor)


def _inserted(view: ViewRef, deltas: Sequence[Delta], at_ms: int, db: Projection) -> int:
    """Insert those patches whose content is stored and that are not there yet.

    Returns:
        How many: nearly always all, because most patches are the same for every step.
    """
    rows: list[Json] = [
        [
            delta.target_type,
            delta.target_key,
            delta.patch.hex,
            canonical.fragment(delta.patch.content),
        ]
        for delta in deltas
    ]
    return db.write_any(
        SQL["insert_deltas"],
        run_id=view.run_id,
        revision=view.revision,
        deltas=canonical.encode(rows).decode(),
        at_ms=at_ms,
    )
