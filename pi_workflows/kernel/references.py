"""Names that name nothing: rows whose foreign key has no other end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from pi_workflows.base.sql import load, plain
from pi_workflows.kernel.comparison import selected_columns
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.kernel.progress import counted
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "references.sql")
KEYS: Final = load(__package__, "keys.sql")
# By the table that is asked about.
_OF_TABLE: Final = {statement.name: statement for statement in KEYS.values()}
FOREIGN_KEYS: Final = ("foreignKeys", "A row names another one that does not exist")

# The one table whose rows have no number.
_LINKS: Final = "event_blobs"


class _Dangling(NamedTuple):
    table: str
    row: int | None


class _Link(NamedTuple):
    event_seq: int
    blob_hash: bytes


def check_references(source: Snapshot, found: Findings, progress: Callable[[int], None]) -> None:
    """Note every name that names nothing, once for each, with the runs of the row that has it."""
    has_links = False
    for dangling in counted(source.each(_Dangling, SQL["dangling"]), progress):
        if dangling.row is None:
            has_links = True
        else:
            found.add(*FOREIGN_KEYS, partial(_runs, source, dangling))
    if has_links:
        for link in counted(source.each(_Link, SQL["dangling_links"]), progress):
            found.add(*FOREIGN_KEYS, partial(runs_of, (source,), _LINKS, link._asdict()))


def _runs(source: Snapshot, dangling: _Dangling) -> tuple[str, ...]:
    """Return the runs of a row that is known by its number."""
    statement = _OF_TABLE[dangling.table]
    values = source.one(plain, statement, row=dangling.row)
    key = dict(zip(selected_columns(statement), values or (), strict=True))
    return runs_of((source,), dangling.table, key)
