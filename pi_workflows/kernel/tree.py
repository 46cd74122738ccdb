"""The root tree of a run: the runs that belong together, and the resources that they own.

What is kept, copied or removed is a whole tree, never a part of one (the state contract, sections
6.1 and 6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.sql import Read, load

SQL: Final = load(__package__, "tree.sql")


@dataclass(frozen=True, slots=True)
class Tree:
    """A root tree.

    Attributes:
        run_ids: Every run that a restart, a recovery or a root joins to one of the others, in
            order.
        resource_ids: The resources of these runs, of what belongs to them, and of the effects of
            all of these, in order.
    """

    run_ids: tuple[str, ...]
    resource_ids: tuple[str, ...]


def tree_of(read: Read, run_id: str) -> Tree:
    """Return the tree of a run.

    Args:
        read: One consistent read.
        run_id: A run of it.

    Raises:
        NotFound: There is no such run (`runMissing`).
    """
    runs = read.all(str, SQL["runs_of_tree"], run_id=run_id)
    if not runs:
        raise NotFound(f"There is no run {run_id}.", code="runMissing", field="run")
    return Tree(tuple(runs), resources_of(read, runs))


def resources_of(read: Read, run_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the resources of runs: themselves, what belongs to them, and the effects of all.

    Args:
        read: One consistent read.
        run_ids: The runs.
    """
    listed: list[Json] = list(run_ids)
    names = canonical.encode(listed).decode()
    return tuple(read.all(str, SQL["resources_of_runs"], run_ids=names))
