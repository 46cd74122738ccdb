"""Which databases are ours: the DDL, its digest, and the exact shape that a file must have.

A database is either exactly the one that this program would create, or it is refused (the state
contract, section 7). The digest says that the same text made it; the shape says that nothing was
changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import apsw

from migrations_forbidden import schema_text
from pi_workflows.base.errors import Incompatible
from pi_workflows.base.sql import load
from pi_workflows.store.driver import Connection, connect

APPLICATION_ID: Final = 0x50495746
USER_VERSION: Final = 1

_SQL = load(__package__, "shape.sql")


class SchemaObject(NamedTuple):
    """One row of `sqlite_schema`, without its root page."""

    type: str
    name: str
    table: str
    sql: str | None


class _Identity(NamedTuple):
    name: str
    version: int
    digest: bytes


@cache
def schema_digest() -> bytes:
    """Return the SHA-256 of the compiled DDL text, 32 bytes."""
    return hashlib.sha256(schema_text().encode()).digest()


def create_schema(connection: Connection, *, now_ms: int, app_version: str) -> None:
    """Build the schema in an empty database, with its identity.

    Args:
        connection: An empty database; this runs in a transaction of its own.
        now_ms: Wall time of the creation, milliseconds.
        app_version: The program's version, for people; never compared.
    """
    connection.execute("BEGIN IMMEDIATE")
    for statement in _statements(schema_text()):
        connection.execute(statement)
    connection.execute(
        _SQL["create_identity"].text,
        {"schema_digest": schema_digest(), "app_version": app_version, "now_ms": now_ms},
    )
    connection.execute("COMMIT")


def check_shape(connection: Connection) -> None:
    """Refuse a database that is not exactly ours.

    Args:
        connection: An open database; only read.

    Raises:
        Incompatible: Its identity, digest or shape differ; a note says where, for the log.
        apsw.Error: SQLite could not read it.
    """
    try:
        difference = _identity_difference(connection) or _shape_difference(connection)
    except UnicodeDecodeError:
        difference = "a text of its schema is not UTF-8"
    if difference is not None:
        raise refusal(difference)


def refusal(reason: str) -> Incompatible:
    """Return the fixed refusal, with the reason as a note for the log."""
    error = Incompatible()
    error.add_note(reason)
    return error


def _statements(text: str) -> Iterator[str]:
    """Split DDL where SQLite sees the end of a statement: one statement is executed at a time."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        lines.append(line)
        if line.rstrip().endswith(";") and apsw.complete("".join(lines)):
            yield "".join(lines)
            lines.clear()
    assert not "".join(lines).strip(), "the schema ends inside a statement"


def _identity_difference(connection: Connection) -> str | None:
    application_id = connection.pragma("application_id")
    if application_id != APPLICATION_ID:
        return f"application_id is {application_id!r}"
    user_version = connection.pragma("user_version")
    if user_version != USER_VERSION:
        return f"user_version is {user_version!r}"
    objects = read_shape(connection)
    if not any(item.name == "schema_meta" and item.type == "table" for item in objects):
        return "there is no table schema_meta"
    try:
        rows = connection.execute(_SQL["identities"].text).fetchall()
    except apsw.SQLError as error:
        return f"schema_meta is another table: {error}"
    expected = _Identity("pi-workflows-state", 1, schema_digest())
    if rows != [expected]:
        return "schema_meta names another schema"
    return None


def _shape_difference(connection: Connection) -> str | None:
    expected = set(expected_shape())
    found = set(read_shape(connection))
    if found == expected:
        return None
    names = sorted(f"{item.type} {item.name}" for item in found ^ expected)
    return f"differs in {names[0]}"


def read_shape(connection: Connection) -> tuple[SchemaObject, ...]:
    """Return every schema object of a database but SQLite's own, ordered by type and name."""
    rows = connection.execute(_SQL["objects"].text).fetchall()
    return tuple(SchemaObject._make(row) for row in rows)


@cache
def expected_shape() -> tuple[SchemaObject, ...]:
    """Return the shape of a database that was just built in memory from the DDL."""
    connection = connect(":memory:")
    try:
        create_schema(connection, now_ms=0, app_version="")
        return read_shape(connection)
    finally:
        connection.close()
