"""What statements cost, in numbers that do not depend on the machine."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pi_workflows.store.database import Store


@dataclass(frozen=True, slots=True)
class StatementCost:
    """One statement that ran to its end.

    Attributes:
        sql: Its text.
        vm_steps: Instructions of SQLite's virtual machine, foreign key actions included.
        full_scan_steps: Rows that it stepped over in tables that it scanned.
        sorts: Sorts that an index did not spare.
    """

    sql: str
    vm_steps: int
    full_scan_steps: int
    sorts: int


@dataclass(slots=True)
class Totals:
    """What was measured so far.

    Attributes:
        statements: Statements that ran.
        vm_steps: Their instructions.
        full_scan_steps: Rows stepped over in scans.
        by_sql: Instructions by a statement's text.
    """

    statements: int = 0
    vm_steps: int = 0
    full_scan_steps: int = 0
    by_sql: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, cost: StatementCost) -> None:
        """Count one statement."""
        self.statements += 1
        self.vm_steps += cost.vm_steps
        self.full_scan_steps += cost.full_scan_steps
        self.by_sql[cost.sql] = self.by_sql.get(cost.sql, 0) + cost.vm_steps


@contextmanager
def measure(store: Store, callback: Callable[[StatementCost], None]) -> Generator[None]:
    """Call back for every statement of the writer's connection while the body runs.

    Args:
        store: The live database.
        callback: Takes the cost of each statement as it ends.
    """

    def ended(event: Mapping[str, object]) -> None:
        status = cast("Mapping[str, int]", event["stmt_status"])
        callback(
            StatementCost(
                sql=cast("str", event["sql"]),
                vm_steps=status["SQLITE_STMTSTATUS_VM_STEP"],
                full_scan_steps=status["SQLITE_STMTSTATUS_FULLSCAN_STEP"],
                sorts=status["SQLITE_STMTSTATUS_SORT"],
            )
        )

    connection = store.writer.connection
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, ended, id=callback)
    try:
        yield
    finally:
        connection.trace_v2(0, None, id=callback)
