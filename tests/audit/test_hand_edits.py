"""No hand can change a row that the log gives without being found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw
import pytest

from migrations_forbidden import schema_text
from pi_workflows.base.sql import SqlValue
from pi_workflows.kernel.comparison import SQL as COMPARED
from pi_workflows.kernel.verify import Violation, verify
from pi_workflows.store.driver import Connection, connect
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from projections import route
from tests.audit.population import SEED

# The runs of a row, told without the product: of the tables that any run has rows of.
_OF_RESOURCE: Final = (
    "SELECT run_id FROM runs WHERE resource_id IN ("
    "SELECT t.resource_id UNION SELECT source_resource_id FROM effects"
    " WHERE resource_id = t.resource_id)"
    " UNION SELECT run_id FROM workflow_messages WHERE resource_id = t.resource_id"
    " UNION SELECT run_id FROM workflow_follow_ups WHERE resource_id = t.resource_id"
)
_OF_EFFECT: Final = (
    "SELECT run_id FROM runs AS r JOIN effects AS e ON e.source_resource_id = r.resource_id"
    " WHERE e.effect_id = t.effect_id"
)
_OF_ATTEMPT: Final = "SELECT run_id FROM node_attempts WHERE attempt_id = t.attempt_id"
_OWN: Final = "SELECT t.run_id"
OWNERS: Final[dict[str, str]] = {
    "projects": "SELECT run_id FROM runs WHERE project_id = t.project_id",
    "resources": _OF_RESOURCE,
    "leases": _OF_RESOURCE,
    "event_blobs": "SELECT r.run_id FROM events AS e LEFT JOIN effects AS f"
    " ON f.resource_id = e.resource_id JOIN runs AS r"
    " ON r.resource_id = coalesce(f.source_resource_id, e.resource_id)"
    " WHERE e.event_seq = t.event_seq"
    " UNION SELECT m.run_id FROM events AS e JOIN workflow_messages AS m"
    " ON m.resource_id = e.resource_id WHERE e.event_seq = t.event_seq"
    " UNION SELECT f.run_id FROM events AS e JOIN workflow_follow_ups AS f"
    " ON f.resource_id = e.resource_id WHERE e.event_seq = t.event_seq",
    "interactive_requests": _OWN,
    "interactive_submissions": "SELECT run_id FROM interactive_requests"
    " WHERE request_id = t.request_id",
    "workflow_definitions": "SELECT run_id FROM runs WHERE definition_digest = t.definition_digest",
    "runs": _OWN,
    "run_sources": _OWN,
    "run_bindings": _OWN,
    "run_queue": _OWN,
    "node_attempts": _OWN,
    "attempt_active_intervals": _OF_ATTEMPT,
    "run_steps": _OWN,
    "workflow_updates": _OWN,
    "workflow_messages": _OWN,
    "workflow_turns": _OWN,
    "workflow_follow_ups": _OWN,
    "effects": _OF_EFFECT,
    "effect_attempts": _OF_EFFECT,
    "viewer_runs": _OWN,
    "viewer_deltas": _OWN,
}
# Facts about live processes, which no log gives again (the state contract, section 2.3).
PROCESS_LOCAL: Final = {
    "leases": (
        "owner_type",
        "owner_id",
        "token_hash",
        "acquired_at",
        "heartbeat_at",
        "expires_at",
    )
}
# The last sample of an interval or a turn that is open is one, too; of a closed one it is the end.
_ROWS: Final = {
    ("attempt_active_intervals", "observed_at"): "ended_at IS NOT NULL",
    ("attempt_active_intervals", "elapsed_ms"): "ended_at IS NOT NULL",
    ("workflow_turns", "active_elapsed_ms"): "ended_at IS NOT NULL",
}


def columns(table: str) -> list[str]:
    """Return the columns of a table that are compared."""
    with closing(connect(":memory:")) as connection:
        connection.execute(schema_text())
        found = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    return [name for name in found if name not in PROCESS_LOCAL.get(table, ())]


COLUMNS: Final = [(table, column) for table in OWNERS for column in columns(table)]


@pytest.fixture(scope="module")
def copied(every_kind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that each test changes and puts back."""
    file = tmp_path_factory.mktemp("edits") / "edited.sqlite"
    file.write_bytes(every_kind.read_bytes())
    return file


def violations(file: Path) -> dict[str, Violation]:
    """Verify a file in full, and return what was found by code."""
    with open_inactive(file, live_directory=None) as source:
        found = verify(
            source, quick=False, scratch=lambda: create_scratch(None), projectors=route
        ).violations
    return {violation.code: violation for violation in found}


def edit(connection: Connection, table: str, column: str, chance: random.Random) -> set[str]:
    """Write another value into one column of one row; return the runs that the row belongs to.

    A value that the schema allows there is preferred: none of its own checks then helps.
    """
    where = _ROWS.get((table, column), "true")
    info = list(connection.execute(f"PRAGMA table_info({table})"))
    keys = [str(row[1]) for row in info if row[5]]
    (kind,) = (str(row[2]) for row in info if row[1] == column)
    names = ", ".join(keys)
    rows = list(
        connection.execute(f"SELECT {column}, {names} FROM {table} WHERE {where}")  # noqa: S608 - a test's own
    )
    before, *values = chance.choice(rows)
    chosen = " AND ".join(f"t.{name} IS ?" for name in keys)
    owners = {
        str(run_id)
        for (run_id,) in connection.execute(
            f"SELECT o.run_id FROM runs AS o, {table} AS t"  # noqa: S608 - a test's own
            f" WHERE {chosen} AND o.run_id IN ({OWNERS[table]})",
            values,
        )
    }
    others = [row[0] for row in rows if row[0] not in (before, None)]
    chance.shuffle(others)
    connection.pragma("foreign_keys", 0)
    for is_forced in (False, True):
        connection.pragma("ignore_check_constraints", is_forced)
        for value in (*others, *_strange(kind, before)):
            try:
                connection.execute(
                    f"UPDATE {table} AS t SET {column} = ? WHERE {chosen}",  # noqa: S608 - a test's own
                    (value, *values),
                )
            except apsw.ConstraintError:
                continue
            assert connection.changes() == 1
            return owners
    raise AssertionError(f"nothing can be written into {table}.{column}")


def _strange(kind: str, before: SqlValue) -> Iterator[SqlValue]:
    """Yield values of a column's type that are not the one there."""
    match before:
        case bytes():
            yield before[::-1]
        case str():
            yield f"{before}x"
        case int():
            yield before + 1_000
            yield 1 - before
        case _:
            values: dict[str, SqlValue] = {"TEXT": "x", "INTEGER": 1, "BLOB": b"x" * 32}
            yield values[kind]
    if before is not None:
        yield None


def test_no_table_is_left_out(every_kind: Path) -> None:
    """Every table that the log gives, and that a run has rows of today, is edited here."""
    with closing(connect(str(every_kind), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        filled = {
            table
            for table in COMPARED
            if list(connection.execute(f"SELECT 1 FROM {table} LIMIT 1"))  # noqa: S608 - as above
        }
    assert filled == set(OWNERS)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_an_edited_column_is_found(copied: Path, table: str, column: str) -> None:
    """The replay reports each edited row, and names the runs that it belongs to."""
    sound = copied.read_bytes()
    chance = random.Random(f"{SEED} {table} {column}")  # noqa: S311 - which row, no secret
    try:
        with closing(connect(str(copied))) as connection:
            owners = edit(connection, table, column, chance)
        found = violations(copied)
        assert "replay" in found, found
        # A row under another key is one that is missing and one too many.
        assert found["replay"].count in (1, 2)
        assert owners
        assert owners <= set(found["replay"].run_ids), (owners, found["replay"])
    finally:
        copied.write_bytes(sound)
