"""What no statement may do to the live database, whoever wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_workflows.base.sql import Statement
from tests.store.bench import (
    COUNT_PROJECTS,
    INSERT_PROJECT,
    Number,
    add_events,
    add_project,
    number,
    projects,
)

if TYPE_CHECKING:
    from pi_workflows.store.database import Store

DENIED = [
    "UPDATE events SET actor_id = 'x'",
    "UPDATE event_blobs SET event_seq = event_seq + 1",
    "UPDATE blobs SET content = x''",
    "UPDATE blobs SET created_at = 0",
    "UPDATE host_commands SET outcome = 'accepted'",
    "UPDATE host_commands SET run_id = NULL",
    "UPDATE worker_messages SET outcome = 'accepted'",
    "UPDATE session_entries SET recorded_at = 0",
    "UPDATE session_events SET recorded_at = 0",
    "UPDATE human_decisions SET title = ''",
    "UPDATE human_decision_resolutions SET reason = ''",
    "UPDATE workflow_setting_changes SET accepted_at = 0",
    "DELETE FROM events",
    "DELETE FROM event_blobs",
    "DELETE FROM blobs",
    "DELETE FROM host_commands",
    "DELETE FROM worker_messages",
    "DELETE FROM session_entries",
    "DELETE FROM session_events",
    "INSERT INTO projects VALUES ('a', 'b', 0) ON CONFLICT DO NOTHING; DELETE FROM events",
    "INSERT INTO blobs SELECT * FROM blobs WHERE 1 ON CONFLICT DO UPDATE SET content = x''",
    "UPDATE sqlite_sequence SET seq = 0",
    "DELETE FROM sqlite_sequence",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END",
    "DROP TABLE projects",
    "DROP INDEX runs_status",
    "ANALYZE",
    "REINDEX",
    "ATTACH ':memory:' AS other",
    "PRAGMA user_version = 2",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA journal_mode = DELETE",
]


@pytest.mark.parametrize("text", DENIED)
def test_history_schema_and_settings_are_out_of_reach(store: Store, text: str) -> None:
    """Journals are appended to only, and schema and settings stay as they were opened."""
    add_events(store, "run-1", 1)
    with (
        pytest.raises(AssertionError, match="AuthError"),
        store.transaction() as transaction,
    ):
        transaction.projection.write_any(Statement("denied", text))


@pytest.mark.parametrize("parent", ["runs", "resources"])
def test_a_cascade_asks_too(store: Store, parent: str) -> None:
    """Deleting a parent is denied where that would delete or clear a journal's rows."""
    text = f"DELETE FROM {parent}"  # noqa: S608 - one of two constants
    if parent == "resources":
        # A resource's events are not deleted with it, but its run is, and that run's receipts.
        text += " WHERE resource_id = 'x'"
    with (
        pytest.raises(AssertionError, match="AuthError"),
        store.transaction() as transaction,
    ):
        transaction.projection.write_any(Statement("denied", text))


def test_a_media_type_may_rise(store: Store) -> None:
    """Of stored content the media type alone can be changed."""
    raise_all = Statement("raise_all", "UPDATE blobs SET media_type = 'application/json'")
    add_events(store, "run-1", 1)
    with store.transaction() as transaction:
        assert transaction.projection.write_any(raise_all) == 1


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO projects VALUES ('x', 'x', 0)",
        "INSERT INTO projects VALUES ('x', 'x', 0) RETURNING 1",
        "-- a comment\nDELETE FROM projects RETURNING 1",
        "WITH a AS (SELECT 1) INSERT INTO projects SELECT 'x', 'x', 0 FROM a RETURNING 1",
        "COMMIT",
        "ROLLBACK",
        "RELEASE command",
        "PRAGMA user_version",
    ],
)
def test_a_decider_cannot_write(store: Store, text: str) -> None:
    """A read refuses everything that is not a query, the end of the transaction too."""
    add_project(store, "p")
    with store.transaction() as transaction:
        with pytest.raises(AssertionError):
            transaction.read.all(Number, Statement("sly", text))
        transaction.projection.write(INSERT_PROJECT, project_id="q")
    assert projects(store) == 2


def test_a_statement_that_a_projector_prepared_cannot_run_in_a_decider(store: Store) -> None:
    """The cache does not carry a write over into a read."""
    with store.transaction() as transaction:
        sly = Statement("sly", "INSERT INTO projects VALUES (:id, :id, 0)")
        transaction.projection.write(sly, id="a")
        with pytest.raises(AssertionError):
            transaction.read.all(Number, sly, id="b")
        assert number(transaction.read, COUNT_PROJECTS) == 1


@pytest.mark.parametrize("text", ["SELECT 1", "COMMIT", "SAVEPOINT x"])
def test_a_write_must_write(store: Store, text: str) -> None:
    """A projector cannot end its transaction, nor call a query a write."""
    with store.transaction() as transaction:
        with pytest.raises(AssertionError, match="does not write"):
            transaction.projection.write_any(Statement("idle", text))
        transaction.projection.write(INSERT_PROJECT, project_id="q")
    assert projects(store) == 1


def test_a_snapshot_cannot_write(store: Store) -> None:
    """A read of the committed database refuses writes twice over."""
    with store.snapshot() as snapshot:
        with pytest.raises(AssertionError, match="not a query"):
            snapshot.all(Number, Statement("sly", "DELETE FROM projects RETURNING 1"))
        with pytest.raises(AssertionError, match="ReadOnlyError"):
            store.reader.change(INSERT_PROJECT, {"project_id": "q"})


def test_a_write_gives_no_rows(store: Store) -> None:
    """A write whose rows nobody reads would still be under way at COMMIT."""
    returning = Statement("returning", "INSERT INTO projects VALUES ('a', 'a', 0) RETURNING 1")
    with pytest.raises(AssertionError, match="gives rows"), store.transaction() as transaction:
        transaction.projection.write(returning)
    assert projects(store) == 0
