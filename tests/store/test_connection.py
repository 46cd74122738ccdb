"""Each switch that the reliability design decided holds on every connection to the live file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest

from pi_workflows.base.limits import BUSY_MS, JOURNAL_SIZE_BYTES, PAGE_CACHE_BYTES
from pi_workflows.store.connection import open_to_verify
from tests.store.bench import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.store.database import Store
    from pi_workflows.store.driver import Connection

SHARED: dict[str, int | str] = {
    "trusted_schema": 0,
    "mmap_size": 0,
    "temp_store": 2,
    "busy_timeout": BUSY_MS,
    "cache_size": -PAGE_CACHE_BYTES // 1024,
    "journal_mode": "wal",
}
WRITER: dict[str, int | str] = {
    **SHARED,
    "foreign_keys": 1,
    "synchronous": 2,
    "wal_autocheckpoint": 0,
    "journal_size_limit": JOURNAL_SIZE_BYTES,
    "query_only": 0,
}
READER: dict[str, int | str] = {**SHARED, "query_only": 1}
# A verification sorts whole tables, in a file without a name.
SPILLING: dict[str, int | str] = {**READER, "temp_store": 1}
SWITCHES = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,
    apsw.SQLITE_DBCONFIG_DQS_DDL: 0,
}


def assert_switches(connection: Connection, pragmas: dict[str, int | str]) -> None:
    """Assert what a connection says about itself."""
    connection.authorizer = None
    assert {name: connection.pragma(name) for name in pragmas} == pragmas
    assert {op: connection.config(op, -1) for op in SWITCHES} == SWITCHES


def test_the_writer_is_durable_and_strict(store: Store) -> None:
    """The writer syncs every commit, checkpoints only when told to, and holds foreign keys."""
    assert_switches(store.writer.connection, WRITER)


def test_the_reader_only_reads(store: Store) -> None:
    """The reader cannot write, whatever statement it is given."""
    connection = store.reader.connection
    assert_switches(connection, READER)
    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM projects")


@pytest.mark.parametrize("immutable", [False, True])
def test_a_verifier_only_reads(tmp_path: Path, *, immutable: bool) -> None:
    """A file that is judged is opened so that it cannot be written."""
    store = open_store(tmp_path)
    store.close()
    connection = open_to_verify(store.path, immutable=immutable)
    try:
        assert_switches(connection, {**SPILLING, "journal_mode": "delete"})
        with pytest.raises(apsw.ReadOnlyError):
            connection.execute("DELETE FROM projects")
        connection.pragma("query_only", "OFF")
        with pytest.raises(apsw.ReadOnlyError):
            connection.execute("DELETE FROM projects")
    finally:
        connection.close()


def test_statements_stay_prepared(store: Store) -> None:
    """A statement that runs again is not prepared again, however many others ran between."""
    connection = store.reader.connection
    texts = ["SELECT 1" + " " * number for number in range(400)]
    for _ in range(2):
        for text in texts:
            connection.execute(text).fetchall()
    stats = connection.cache_stats()
    assert stats["misses"] < len(texts) + 50
    assert stats["hits"] >= len(texts)
