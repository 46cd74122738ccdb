"""The one schema: its text, its digest, its rules.

A change here refuses every database of an earlier build.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from syrupy.assertion import SnapshotAssertion

from migrations_forbidden import schema_digest_committed, schema_text
from pi_workflows.store.driver import Connection, connect

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pi_workflows", "projections", "migrations_forbidden", "scripts", "tests")
# Columns that end in _hash without naming a blob: keys of content, and hashes of secrets.
KEYS = {
    ("blobs", "blob_hash"),
    ("run_view_content", "content_hash"),
    ("leases", "token_hash"),
    ("workflow_host_state", "token_hash"),
}


class ForeignKey(NamedTuple):
    """A foreign key: the table it names, and its own columns."""

    parent: str
    columns: tuple[str, ...]


class Index(NamedTuple):
    """An index: its columns, and the condition of a partial one."""

    name: str
    columns: tuple[str, ...]
    where: str
    unique: bool


@pytest.fixture
def database() -> Iterator[Connection]:
    """A database in memory that was built from the DDL."""
    connection = connect(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    for _ in connection.execute(schema_text()):
        pass
    yield connection
    connection.close()


def text_of(value: object) -> str:
    """Return a value that SQLite gave as text."""
    assert isinstance(value, str)
    return value


def tables(database: Connection) -> list[str]:
    """Return the names of all tables but SQLite's own."""
    rows = database.execute("""
        SELECT name FROM sqlite_schema
        WHERE type = 'table' AND name <> 'sqlite_sequence'
        ORDER BY name
    """).fetchall()
    return [text_of(row[0]) for row in rows]


def columns_of(database: Connection, table: str) -> list[tuple[str, str]]:
    """Return name and declared type of a table's columns."""
    rows = database.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
    return [(text_of(name), text_of(kind)) for name, kind in rows]


def sql_of(database: Connection, name: str) -> str:
    """Return the SQL that made a table or index; empty for an index that a key implies."""
    text = database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get
    return "" if text is None else text_of(text)


def foreign_keys(database: Connection, table: str) -> list[ForeignKey]:
    """Return a table's foreign keys, each with its child columns in order."""
    rows = database.execute(
        """
        SELECT id, "table", group_concat("from", ',') FROM pragma_foreign_key_list(?)
        GROUP BY id ORDER BY id, seq
    """,
        (table,),
    ).fetchall()
    return [
        ForeignKey(text_of(parent), tuple(text_of(columns).split(",")))
        for _, parent, columns in rows
    ]


def indexes(database: Connection, table: str) -> list[Index]:
    """Return a table's indexes, those that its keys imply included."""
    found: list[Index] = []
    rows = database.execute("""SELECT name, "unique" FROM pragma_index_list(?)""", (table,))
    for name, unique in rows.fetchall():
        parts = database.execute(
            "SELECT name FROM pragma_index_info(?) ORDER BY seqno", (name,)
        ).fetchall()
        where = sql_of(database, text_of(name)).partition("WHERE ")[2]
        columns = tuple(text_of(part[0]) for part in parts)
        found.append(Index(text_of(name), columns, where, unique=bool(unique)))
    return found


def test_schema_text_is_the_contract(snapshot: SnapshotAssertion) -> None:
    """The DDL is what reviewers accepted; a change makes every earlier database a refused one."""
    assert schema_text() == snapshot


def test_digest_is_committed() -> None:
    """The committed digest is that of the DDL's bytes."""
    stored = files("migrations_forbidden").joinpath("schema_v1.sql").read_bytes()
    assert hashlib.sha256(stored).hexdigest() == schema_digest_committed()
    assert stored.decode() == schema_text()


def test_there_is_one_schema() -> None:
    """No other file of the tree creates tables, and nothing ever alters one.

    Specimens do, of databases that have to be refused.
    """
    alters = re.compile(r"ALTER\s+" + "TABLE", re.IGNORECASE)
    creates = re.compile(r"^\s*CREATE\s+(TEMP\w*\s+)?" + "TABLE", re.IGNORECASE | re.MULTILINE)
    offenders: list[str] = []
    schemas: list[str] = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            name = str(path.relative_to(ROOT))
            is_specimen = name.startswith("migrations_forbidden/specimens/")
            is_text = path.suffix in {".py", ".sql", ".sh", ""}
            if is_specimen or not is_text or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            if alters.search(text):
                offenders.append(name)
            if path.suffix == ".sql" and creates.search(text):
                schemas.append(name)
    assert offenders == []
    assert schemas == ["migrations_forbidden/schema_v1.sql"]


def test_version_is_one(database: Connection) -> None:
    """The application ID spells PIWF and the version is 1, as every database that we open says."""
    assert database.execute("PRAGMA application_id").get == int.from_bytes(b"PIWF")
    assert database.execute("PRAGMA user_version").get == 1


def test_table_count(database: Connection) -> None:
    """There are the 46 tables of the state contract and event_blobs."""
    assert len(tables(database)) == 47
    assert "event_blobs" in tables(database)


def test_tables_are_strict_rowid_tables(database: Connection) -> None:
    """Every table is STRICT, and event_blobs alone has no rowid."""
    rows = database.execute("""
        SELECT name, wr, strict FROM pragma_table_list
        WHERE schema = 'main' AND name NOT GLOB 'sqlite_*'
    """).fetchall()
    assert {row[0] for row in rows if not row[2]} == set()
    assert {row[0] for row in rows if row[1]} == {"event_blobs"}


def test_autoincrement_is_the_events_alone(database: Connection) -> None:
    """Only the log numbers its rows, from a high-water mark that outlives them."""
    rows = database.execute("""
        SELECT name FROM sqlite_schema
        WHERE sql LIKE '%PRIMARY KEY AUTOINCREMENT%' AND type = 'table'
    """).fetchall()
    assert rows == [("events",)]


def test_server_state_has_its_row(database: Connection) -> None:
    """The server's row exists before any server, at epoch 0 and unclaimed."""
    row = database.execute(
        "SELECT id, epoch, host_id, expires_at FROM workflow_host_state"
    ).fetchall()
    assert row == [(1, 0, None, None)]


def test_foreign_keys_are_indexed(database: Connection) -> None:
    """A foreign key's columns lead a full index, or have one over the rows where they are set."""
    missing: list[str] = []
    for table in tables(database):
        own = indexes(database, table)
        for key in foreign_keys(database, table):
            if (table, key.columns) == ("event_blobs", ("event_seq",)):
                continue  # The primary key of a table without rowid is the table.
            leading = (
                index.columns[: len(key.columns)] == key.columns and not index.where
                for index in own
            )
            partial = (
                index.columns == key.columns and index.where == f"{key.columns[0]} IS NOT NULL"
                for index in own
            )
            if not any(leading) and not any(partial):
                missing.append(f"{table}({', '.join(key.columns)})")
    assert missing == []


def test_no_index_is_written_for_nothing(database: Connection) -> None:
    """No index repeats the leading columns of another full one: each costs every insert."""
    repeated: list[str] = []
    for table in tables(database):
        full = [index for index in indexes(database, table) if not index.where]
        repeated += [
            f"{short.name} by {long.name}"
            for short in full
            for long in full
            if short is not long
            and not short.unique
            and long.columns[: len(short.columns)] == short.columns
        ]
    assert repeated == []


def test_hash_columns_name_blobs(database: Connection) -> None:
    """A column ends in _hash exactly when it names a blob, but for the four keys."""
    named: set[tuple[str, str]] = set()
    called: set[tuple[str, str]] = set()
    for table in tables(database):
        named |= {
            (table, key.columns[0])
            for key in foreign_keys(database, table)
            if key.parent == "blobs"
        }
        called |= {
            (table, column) for column, _ in columns_of(database, table) if column.endswith("_hash")
        }
    assert called - named == KEYS
    assert named <= called


def test_digest_columns_are_32_bytes(database: Connection) -> None:
    """A BLOB column is content, a foreign key, or itself checked to be 32 bytes."""
    unchecked: list[str] = []
    for table in tables(database):
        keys = {column for key in foreign_keys(database, table) for column in key.columns}
        unchecked += [
            f"{table}.{column}"
            for column, kind in columns_of(database, table)
            if kind == "BLOB"
            and column not in keys
            and column != "content"
            and f"CHECK (length({column}) = 32)" not in sql_of(database, table)
        ]
    assert unchecked == []


def test_times_are_never_negative(database: Connection) -> None:
    """A column that ends in _at or _ms is an integer that is checked to be 0 or more."""
    wrong = [
        f"{table}.{column}"
        for table in tables(database)
        for column, kind in columns_of(database, table)
        if column.endswith(("_at", "_ms"))
        and (kind != "INTEGER" or f"CHECK ({column} >= 0)" not in sql_of(database, table))
    ]
    assert wrong == []


def test_deferred_keys_are_the_recovery_pair(database: Connection) -> None:
    """Only a run's recovery root and message wait for COMMIT; other keys are checked at once."""
    column = re.compile(r"^\s+(\w+) TEXT[^,]*?DEFERRABLE INITIALLY DEFERRED", re.MULTILINE)
    deferred = [
        name for table in tables(database) for name in column.findall(sql_of(database, table))
    ]
    assert deferred == ["recovery_root_run_id", "recovery_source_message_id"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO blobs VALUES (x'00', 'text/plain', 0, x'', 0)",
        "INSERT INTO blobs VALUES (zeroblob(32), 'text/plain', 2, x'00', 0)",
        "INSERT INTO blobs VALUES (zeroblob(32), 'text/plain', 0, x'', -1)",
        "INSERT INTO resources VALUES ('r', 'workflow', 'k', 0, 0, 0)",
        "INSERT INTO leases (resource_id, owner_type) VALUES ('run-1', 'host')",
        "INSERT INTO leases VALUES ('run-1', 1, 'host', 'h', zeroblob(31), 0, 0, 0)",
        "UPDATE workflow_host_state SET epoch = -1",
        "UPDATE workflow_host_state SET host_id = 'h'",
        "INSERT INTO workflow_host_state (id) VALUES (2)",
        "INSERT INTO schema_meta VALUES (1, 'pi-workflows-state', 2, zeroblob(32), '', 0, 0)",
        (
            "INSERT INTO events VALUES (1, 'e', 'run-1', 0, 't', 'system', NULL, NULL, "
            "zeroblob(32), zeroblob(32), 0)"
        ),
        (
            "INSERT INTO host_commands VALUES ('r', 'c', '', 'k', zeroblob(32), NULL, NULL, "
            "'accepted', NULL, NULL, 1, zeroblob(32), 0, 0)"
        ),
        "INSERT INTO viewer_runs VALUES ('x', 2, 3, 0)",
        "INSERT INTO viewer_runs VALUES ('x', 2, 0, 0)",
    ],
)
def test_checks_hold(database: Connection, statement: str) -> None:
    """A row outside its status set, pair rule, range or length never enters."""
    database.execute("INSERT INTO resources VALUES ('run-1', 'run', 'k', 0, 0, 0)")
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute(statement)
