"""SQL stands in files, fits the schema, is used, and every projection table has one writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import apsw
import pytest

from tests.tidy.repository import UNSHIPPED, File, files, module, modules
from tests.tidy.statements import (
    SCHEMA,
    Statement,
    database,
    effect,
    misused,
    statements,
)

# Where SQL may stand, and whether it may write there.
_MAY_WRITE = {
    "pi_workflows/domain": False,
    "pi_workflows/views": False,
    "pi_workflows/kernel": False,
    "pi_workflows/audit": False,
    "pi_workflows/store": True,
    "projections": True,
}


def _sql_files() -> tuple[File, ...]:
    """Return the files of named statements."""
    found = tuple(
        file
        for file in files()
        if file.path.endswith(".sql")
        and file.path != SCHEMA
        and not file.path.startswith(UNSHIPPED)
    )
    assert found, "no SQL file"
    return found


def _schema() -> str:
    """Return the one DDL."""
    (text,) = (file.text for file in files() if file.path == SCHEMA)
    assert text
    return text


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    """A database in memory that has the schema."""
    made = database(_schema())
    yield made
    made.close()


def unfit(connection: apsw.Connection, statement: Statement) -> Iterator[str]:
    """Find what keeps a statement from being run as it is meant: alone, by name, on this schema."""
    try:
        found = effect(connection, statement)
    except apsw.Error as error:
        yield f"{statement.where}: {error}"
        return
    if found.rest.strip():
        yield f"{statement.where}: a second statement follows: {found.rest.strip()[:40]}"
    if found.unnamed:
        yield f"{statement.where}: a parameter without a name"
    may_write = [
        allowed
        for folder, allowed in _MAY_WRITE.items()
        if PurePosixPath(statement.file).is_relative_to(folder)
    ]
    if not may_write:
        yield f"{statement.where}: SQL does not belong here"
    elif not (found.is_readonly or may_write[0]):
        yield f"{statement.where}: writes, where SQL only reads"


def shared_tables(connection: apsw.Connection, of: list[Statement]) -> Iterator[str]:
    """Find tables that statements of more than one file write."""
    owners: dict[str, set[str]] = {}
    for statement in of:
        for table in effect(connection, statement).writes:
            owners.setdefault(table, set()).add(statement.file)
    for table, found in sorted(owners.items()):
        if len(found) > 1:
            yield f"{table}: written by {', '.join(sorted(found))}"


def test_every_statement_fits_the_schema(connection: apsw.Connection) -> None:
    """Each statement fits the one DDL, stands alone, and writes only where it may."""
    every = [statement for file in _sql_files() for statement in statements(file)]
    assert every
    assert [found for statement in every for found in unfit(connection, statement)] == []


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("projections/a.sql", "SELECT ghost FROM runs", "no such column"),
        ("projections/a.sql", "SELECT run_id FROM nowhere", "no such table"),
        ("projections/a.sql", "SELECT 1; SELECT 2", "second statement"),
        ("projections/a.sql", "SELECT run_id FROM runs WHERE run_id = ?", "without a name"),
        ("pi_workflows/views/a.sql", "DELETE FROM runs", "only reads"),
        ("pi_workflows/domain/run/a.sql", "DELETE FROM runs", "only reads"),
        ("pi_workflows/audit/a.sql", "DELETE FROM runs", "only reads"),
        ("pi_workflows/server/a.sql", "SELECT 1", "does not belong"),
    ],
)
def test_an_unfit_statement_is_found(
    connection: apsw.Connection, file: str, text: str, says: str
) -> None:
    """A statement that fits no schema, hides another or writes where it may not is found."""
    (found,) = unfit(connection, Statement(file, "planted", text))
    assert says in found


def test_every_statement_is_used_and_every_name_exists() -> None:
    """Each file is loaded, each of its statements named, and each name has a statement."""
    product = [each for each in modules() if each.is_product]
    assert list(misused(_sql_files(), product)) == []


def test_a_misused_name_is_found() -> None:
    """A statement that nobody names, a name that is none and a file that nobody loads are found."""
    used = File("projections/a.sql", b"-- name: one\nSELECT 1\n\n-- name: two\nSELECT 2\n")
    forgotten = File("projections/b.sql", b"-- name: three\nSELECT 3\n")
    head = 'SQL = load(__package__, "a.sql")\n'
    loader = module("projections/a.py", f'{head}SQL["one"]\nSQL["four"]\n')
    other = module("projections/d.py", 'from projections.a import SQL as S\nS["five"]\n')
    assert set(misused([used, forgotten], [loader, other])) == {
        "projections/a.sql: two is used nowhere",
        "projections/b.sql: nobody loads it",
        "projections/a.py:3: projections/a.sql has no four",
        "projections/d.py:2: projections/a.sql has no five",
    }
    missing = module("projections/c.py", 'X: Final = load("projections", "c.sql")\n')
    every = module("projections/a.py", f"{head}SQL.values()\n")
    assert list(misused([used], [every, missing])) == [
        "projections/c.py: there is no projections/c.sql"
    ]


def test_every_projection_table_has_one_writer(connection: apsw.Connection) -> None:
    """No two files of the projections write the same table."""
    every = [
        statement
        for file in _sql_files()
        if file.path.startswith("projections/")
        for statement in statements(file)
    ]
    assert any(effect(connection, statement).writes for statement in every)
    assert list(shared_tables(connection, every)) == []


def test_a_second_writer_is_found(connection: apsw.Connection) -> None:
    """Two files that write one table are found, whatever they do to it."""
    first = Statement("projections/a.sql", "a", "DELETE FROM runs WHERE run_id = :run_id")
    second = Statement("projections/b.sql", "b", "UPDATE runs SET status = :status")
    assert list(shared_tables(connection, [first, second])) == [
        "runs: written by projections/a.sql, projections/b.sql"
    ]
    assert not list(shared_tables(connection, [first, first]))
