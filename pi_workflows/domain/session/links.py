"""Which entries of a captured session belong to the attempt that it was captured for."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pi_workflows.base.sql import Read, load
from pi_workflows.domain.attempt.events import EntriesLinked
from pi_workflows.domain.fact import Draft
from pi_workflows.domain.session_rows import EntryLinkRow

SQL: Final = load(__package__, "links.sql")


class _Link(NamedTuple):
    role: Literal["prompt", "response", "first", "last"]
    entry_id: str


def linked(read: Read, run_id: str, segment_id: str, attempt_id: str) -> list[Draft]:
    """Return the links of an attempt to the entries of its capture, which has ended.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        segment_id: The capture.
        attempt_id: Its attempt.

    Returns:
        The run's event: its first and last entry, the newest message that told the step and what
        the newest turn answered, as far as the capture holds them; nothing when it holds none, or
        when another capture of the attempt was linked.
    """
    if read.one(int, SQL["is_linked"], attempt_id=attempt_id):
        return []
    found = read.all(_Link, SQL["links"], segment_id=segment_id, attempt_id=attempt_id)
    if not found:
        return []
    rows = tuple(
        EntryLinkRow(
            attempt_id=attempt_id, role=link.role, segment_id=segment_id, entry_id=link.entry_id
        )
        for link in found
    )
    return [Draft("run", run_id, EntriesLinked(run_id=run_id, entries=rows), run_id)]
