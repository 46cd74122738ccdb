"""Every row that the log reproduces belongs to runs that can be named."""

from __future__ import annotations

import re

import pytest

from migrations_forbidden import schema_text
from pi_workflows.base.sql import SqlValue
from pi_workflows.kernel.ownership import SQL as OWNERS
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.store.driver import connect
from tests.kernel.harness import Harness, begin, end, reserve, try_effect
from tests.kernel.test_effects import IDEMPOTENT

# Values, which many rows name, and what is about the file and its server.
OF_NO_RUN = {"blobs", "schema_meta", "sqlite_sequence", "workflow_host_state"}


def test_every_table_has_an_owner() -> None:
    """Each table has a statement, which asks for nothing but columns of the table's key."""
    connection = connect(":memory:")
    connection.execute(schema_text())
    tables = {
        str(name)
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    }
    assert tables - set(OWNERS) == OF_NO_RUN
    for table, statement in OWNERS.items():
        info = connection.execute(f"PRAGMA table_info({table})")
        key = {str(row[1]) for row in info if row[5]}
        asked = set(re.findall(r":(\w+)", statement.text))
        assert asked, table
        assert asked <= key, table


def test_no_owner_is_looked_for_in_a_whole_table() -> None:
    """Each lookup goes through an index."""
    connection = connect(":memory:")
    connection.execute(schema_text())
    for statement in OWNERS.values():
        values = dict.fromkeys(re.findall(r":(\w+)", statement.text))
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", values)
        steps = [str(row[3]) for row in plan]
        scans = [step for step in steps if step.startswith("SCAN") and "subquery" not in step]
        assert {step.split()[1] for step in scans} <= {"CONSTANT", "o"}, steps


def test_the_rows_of_a_run_name_it(bench: Harness) -> None:
    """Rows of any depth lead to their run; a row that stands nowhere leads to none."""
    permit = bench.launch("other")
    bench.do(begin("one", run_id="other"), permit=permit)
    bench.do(end("one", 1, run_id="other"), permit=permit)
    permit = bench.launch(workflow=IDEMPOTENT)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    values = bench.do(reserve("deploy"), permit=permit).values
    assert isinstance(values, dict)
    effect_id = str(values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    (attempt_id,) = (str(row[0]) for row in bench.dump("node_attempts") if row[1] == "run-1")
    (resource_id,) = (str(row[0]) for row in bench.dump("resources") if row[2] == effect_id)
    (project_id,) = (str(row[0]) for row in bench.dump("projects"))
    with bench.store.snapshot() as read:
        rows: tuple[tuple[str, dict[str, SqlValue]], ...] = (
            ("runs", {"run_id": "run-1"}),
            ("node_attempts", {"attempt_id": attempt_id}),
            ("attempt_active_intervals", {"attempt_id": attempt_id, "interval_number": 1}),
            ("leases", {"resource_id": resource_id}),
            ("resources", {"resource_id": resource_id}),
            ("effects", {"effect_id": effect_id}),
            ("effect_attempts", {"effect_id": effect_id, "attempt_number": 1}),
        )
        for table, key in rows:
            assert runs_of((read, read), table, key) == ("run-1",), table
        assert runs_of((read,), "projects", {"project_id": project_id}) == ("other", "run-1")
        assert runs_of((read,), "event_blobs", {"event_seq": 1, "blob_hash": b""}) == ("other",)
        assert runs_of((read,), "node_attempts", {"attempt_id": "none"}) == ()


@pytest.mark.parametrize("table", sorted(OWNERS))
def test_a_row_that_stands_nowhere_is_no_error(bench: Harness, table: str) -> None:
    """Looking for the owner of a missing row finds at most the run that its own key names."""
    key: dict[str, SqlValue] = dict.fromkeys(re.findall(r":(\w+)", OWNERS[table].text), "absent")
    with bench.store.snapshot() as read:
        assert runs_of((read,), table, key) in ((), ("absent",))
