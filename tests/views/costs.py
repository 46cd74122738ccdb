"""What a read costs, in numbers that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import apsw

from pi_workflows.base.sql import Read
from pi_workflows.store.database import Store


@dataclass
class Cost:
    """What was read.

    Attributes:
        statements: The texts of the statements that ran, in order.
        vm_steps: Instructions of SQLite's virtual machine.
        pages: Pages of the database that were looked at, each as often as it was.
    """

    statements: list[str] = field(default_factory=list[str])
    vm_steps: int = 0
    pages: int = 0


@contextmanager
def reading(store: Store) -> Generator[Cost]:
    """Measure everything that is read outside of commands while the body runs."""
    cost = Cost()
    connection = store.reader.connection

    def ended(event: Any) -> None:
        cost.statements.append(event["sql"])
        cost.vm_steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    before = _pages(store)
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ended, id=cost)
    try:
        yield cost
    finally:
        connection.trace_v2(0, None, id=cost)
        cost.pages = _pages(store) - before


def cost_of(store: Store, work: Callable[[Read], object]) -> Cost:
    """Return what a read costs that finds everything prepared, as the second one of its kind."""
    with store.snapshot() as read:
        work(read)
    with reading(store) as cost, store.snapshot() as read:
        work(read)
    return cost


def _pages(store: Store) -> int:
    """Return how many pages were looked at so far, in memory or not."""
    status = store.reader.connection.status
    return sum(
        status(kind)[0]
        for kind in (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
    )
