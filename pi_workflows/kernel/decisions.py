"""What a decision asked: its one digest is recomputed over everything that it names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from pi_workflows.base.sql import SqlValue, load
from pi_workflows.domain.decision.request import Asked
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.progress import counted
from pi_workflows.kernel.rules import Owner
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "decisions.sql")

DECISION_RULE: Final = ("decisionRule", "A decision was asked in other words than its digest says")


class _Stored(NamedTuple):
    request_digest: bytes
    request_hash: bytes
    asked: Asked


def check_decisions(source: Snapshot, found: Findings, progress: Callable[[int], None]) -> None:
    """Note every decision whose request digest is not that of what it asks."""
    for stored in counted(source.each(_stored, SQL["decisions"]), progress):
        digest = stored.asked.blob().digest
        if not stored.request_digest == stored.request_hash == digest:
            found.add(*DECISION_RULE, partial(Owner(stored.asked.run_id).runs, source))


def _stored(digest: bytes, request: bytes, *asked: SqlValue) -> _Stored:
    """Return a row with what it asks."""
    return _Stored(digest, request, Asked(*asked))  # type: ignore[arg-type] # the columns in order
