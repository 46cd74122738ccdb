"""`viewer_session_checkpoints`: the replay state at each 256th event of a run's sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.session.journal import Checkpoint

SQL: Final = load(__package__, "checkpoints.sql")


def recorded(run_id: str, checkpoints: Iterable[Checkpoint], at_ms: int, db: Projection) -> None:
    """Store the states of the boundaries that a flush crossed.

    Args:
        run_id: The run.
        checkpoints: The states; they were computed of the journal, whose content no projector
            reads.
        at_ms: When the flush was recorded.
        db: The projection.
    """
    for checkpoint in checkpoints:
        db.keep(checkpoint.state, at_ms)
        db.write(
            SQL["insert_checkpoint"],
            run_id=run_id,
            event_seq=checkpoint.event_seq,
            state_hash=checkpoint.state.digest,
            at_ms=at_ms,
        )
