"""Whose a row is: the runs that a row of any table belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pi_workflows.base.limits import VIOLATION_RUNS_MAX
from pi_workflows.base.sql import Read, SqlValue, load

SQL: Final = load(__package__, "ownership.sql")

# Each statement is called as the table whose rows it is about.
_OF_TABLE: Final = {statement.name: statement for statement in SQL.values()}


class _Owner(NamedTuple):
    run_id: str | None
    resource_id: str | None


def runs_of(sides: Sequence[Read], table: str, key: Mapping[str, SqlValue]) -> tuple[str, ...]:
    """Return the runs that a row belongs to.

    Args:
        sides: Databases in which the row may stand; it may be missing in some, and belong to one
            run here and to another there.
        table: A table of `ownership.sql`: any but those of values and of the server itself.
        key: The columns of the row's key with their values, as `Difference.key` gives them.

    Returns:
        Run IDs in order, at most 100; none when the row belongs to no run.
    """
    found = {run_id for side in sides for run_id in _on(side, table, key)}
    return tuple(sorted(found)[:VIOLATION_RUNS_MAX])


def _on(side: Read, table: str, key: Mapping[str, SqlValue]) -> Iterator[str]:
    """Yield the runs that a row belongs to in one database."""
    for run_id, resource_id in side.all(_Owner, _OF_TABLE[table], **key):
        if run_id is not None:
            yield run_id
        elif resource_id is not None:
            yield from _on(side, "resources", {"resource_id": resource_id})
