"""Every single mutation of the schema, as statements on a database that has it.

Made from the text of the DDL, so that a table, a column or an index that is added there is mutated
without anybody thinking of it. What is not mutated keeps its text to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from migrations_forbidden import schema_digest_committed, schema_text
from migrations_forbidden.specimens.ddl import WITHOUT_ROWID, Index, Item, Table, parse
from pi_workflows.store.driver import Connection, connect
from pi_workflows.store.shape import create_schema

Change: TypeAlias = tuple[str, str, Item | None]

_RETYPED: Final = {"INTEGER": "TEXT", "TEXT": "BLOB", "BLOB": "ANY"}
_REFERENCE: Final = re.compile(r"\s+REFERENCES (\w+ \([\w, ]+\))(.*)", re.DOTALL)
_ON_DELETE: Final = re.compile(r" ON DELETE (CASCADE|SET NULL)")
_CASCADE: Final = " ON DELETE CASCADE"
_DEFERRED: Final = " DEFERRABLE INITIALLY DEFERRED"
_DEFAULT: Final = re.compile(r" DEFAULT \d+")
_IDENTITY: Final = "schema_meta"
# The bytes of the header that say whether there may be a write-ahead log: 2 with one, 1 without.
_FORMAT: Final = slice(18, 20)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutation.

    Attributes:
        family: Its kind.
        what: What is different.
        statements: What makes it of a database with the schema, one statement each.
    """

    family: str
    what: str
    statements: tuple[str, ...]


def mutants() -> Iterator[Mutant]:
    """Yield every mutation of the schema as it stands."""
    tables, indexes = parse(schema_text())
    for table in tables:
        own = tuple(index for index in indexes if index.table == table.name)
        yield from _of_table(table, own)
        for item in table.items:
            changes = _of_column(table, item) if item.is_column else _of_constraint(item)
            for family, what, new in (*changes, *_of_checks(item), *_of_reference(item)):
                made = table.with_item(item, *(() if new is None else (new,)))
                yield _remade(family, f"{table.name}: {item.name} {what}", made, own)
    for index in indexes:
        yield from _of_index(index)
    yield from _additions(tables)
    yield from _identities()


def controls() -> Iterator[Mutant]:
    """Yield what makes each table and its indexes again as they were, which is no mutation."""
    tables, indexes = parse(schema_text())
    for table in tables:
        own = tuple(index for index in indexes if index.table == table.name)
        yield _remade("control", table.name, table, own)


@contextmanager
def images() -> Generator[ImageMaker]:
    """Make the files of mutants in memory, for as long as the body runs."""
    connection = connect(":memory:")
    try:
        # Small pages, as most of them are empty: the shape does not depend on it.
        connection.pragma("page_size", 512)
        create_schema(connection, now_ms=0, app_version="")
        yield ImageMaker(connection)
    finally:
        connection.close()


class ImageMaker:
    """Makes the file of one mutant after another."""

    def __init__(self, connection: Connection) -> None:
        """Take over a database with the schema; use `images`."""
        self._connection = connection

    def make(self, mutant: Mutant, *, has_wal: bool) -> bytes:
        """Return the bytes of a mutant's file.

        Args:
            mutant: The mutation.
            has_wal: Whether the file says that it is in write-ahead mode.
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in mutant.statements:
                connection.execute(statement, can_cache=False)
            image = bytearray(connection.serialize("main"))
        finally:
            connection.execute("ROLLBACK")
            connection.pragma("ignore_check_constraints", 0)
        image[_FORMAT] = b"\x02\x02" if has_wal else b"\x01\x01"
        return bytes(image)


def _of_table(table: Table, own: tuple[Index, ...]) -> Iterator[Mutant]:
    """Yield how a table is stored otherwise, and what becomes of it with other columns."""
    if WITHOUT_ROWID in table.tail:
        without = replace(table, tail=table.tail.replace(WITHOUT_ROWID, ""))
    else:
        items = tuple(Item(item.text.replace(" AUTOINCREMENT", "")) for item in table.items)
        without = replace(table, items=items, tail=f"{table.tail}{WITHOUT_ROWID}")
    yield _remade("storage", f"{table.name}: other rowid", without, own)
    loose = replace(table, tail=table.tail.replace(" STRICT", "").replace("),", ")"))
    yield _remade("storage", f"{table.name}: not STRICT", loose, own)
    columns = [item for item in table.items if item.is_column]
    last = columns[-1]
    longer = table.with_item(last, last, Item("\n    surplus TEXT"))
    yield _remade("column added", table.name, longer, own)
    moved = replace(table, items=(last, *(item for item in table.items if item is not last)))
    yield _remade("column moved", f"{table.name}: {last.name}", moved, own)
    for column in columns:
        what = f"{table.name}: {column.name}"
        fitting = tuple(index for index in own if not index.mentions(column.name))
        yield _remade("column dropped", what, table.without_column(column), fitting)
        name = f"{column.name}_2"
        following = tuple(index.with_column_named(column.name, name) for index in own)
        yield _remade("column renamed", what, table.with_column_named(column, name), following)


def _of_column(table: Table, column: Item) -> Iterator[Change]:
    """Yield a column with another type, rule or default."""
    text = column.text
    kind = text.split()[1]
    head = f"{column.name} {kind}"
    # The row that says whose schema it is has to fit.
    retyped = "ANY" if table.name == _IDENTITY else _RETYPED[kind]
    new = text.replace(head, f"{column.name} {retyped}").replace(" AUTOINCREMENT", "")
    yield "column retyped", "retyped", Item(new)
    if " NOT NULL" in text:
        yield "column nullable", "nullable", Item(text.replace(" NOT NULL", ""))
    else:
        yield "column nullable", "not nullable", Item(text.replace(head, f"{head} NOT NULL"))
    if found := _DEFAULT.search(text):
        yield "default", "without default", Item(text.replace(found[0], ""))
        yield "default", "other default", Item(text.replace(found[0], " DEFAULT 7"))
    for key in (" UNIQUE", " PRIMARY KEY", " AUTOINCREMENT"):
        if key in text:
            dropped = text.replace(" AUTOINCREMENT", "").replace(key, "")
            yield "key", f"without{key}", Item(dropped)


def _of_constraint(constraint: Item) -> Iterator[Change]:
    """Yield a table without a constraint, or with its columns in another order."""
    if constraint.is_list:
        yield "key", "dropped", None
        columns = constraint.columns()
        if len(columns) > 1:
            yield "key", "in another order", constraint.of_columns(columns[::-1])
            yield "key", "shorter", constraint.of_columns(columns[:-1])


def _of_checks(item: Item) -> Iterator[Change]:
    """Yield an item without each of its checks."""
    for found in re.finditer(r"\s*CHECK \(", item.text):
        end = _closing(item.text, found.end())
        rest = item.text[: found.start()] + item.text[end:]
        yield "check", f"without check {found.start()}", Item(rest) if rest.strip() else None


def _of_reference(item: Item) -> Iterator[Change]:
    """Yield an item whose foreign key is missing, leads elsewhere or acts otherwise."""
    found = _REFERENCE.search(item.text)
    if found is None:
        return
    head, whole, rule = item.text[: found.start()], found[0], found[2]
    yield "foreign key", "without foreign key", Item(head) if item.is_column else None
    if item.is_column:
        elsewhere = "leases (resource_id)" if "leases" not in found[1] else "blobs (blob_hash)"
        yield "foreign key", "leads elsewhere", Item(head + whole.replace(found[1], elsewhere))
    action = _ON_DELETE.sub("", rule) if _ON_DELETE.search(rule) else _CASCADE + rule
    yield "foreign key", "acts otherwise", Item(item.text.removesuffix(rule) + action)
    other = rule.replace(_DEFERRED, "") if _DEFERRED in rule else rule + _DEFERRED
    yield "foreign key", "deferred otherwise", Item(item.text.removesuffix(rule) + other)


def _of_index(index: Index) -> Iterator[Mutant]:
    """Yield an index that is missing, or of other columns, rows or uniqueness."""
    drop = f"DROP INDEX {index.name}"
    yield Mutant("index dropped", index.name, (drop,))
    first, *rest = index.columns
    turned = first.removesuffix(" DESC") if first.endswith(" DESC") else f"{first} DESC"
    changes = {
        "uniqueness": replace(index, is_unique=not index.is_unique),
        "direction": replace(index, columns=(turned, *rest)),
    }
    if rest:
        changes["order"] = replace(index, columns=index.columns[::-1])
        changes["columns"] = replace(index, columns=index.columns[:-1])
    if index.condition:
        changes["every row"] = replace(index, condition="")
        changes["other rows"] = replace(index, condition=f"{index.condition} AND 1")
    else:
        name = first.removesuffix(" DESC")
        changes["fewer rows"] = replace(index, condition=f" WHERE {name} IS NOT NULL")
    for what, changed in changes.items():
        yield Mutant("index changed", f"{index.name}: {what}", (drop, changed.text))
    renamed = replace(index, name=f"{index.name}_2")
    yield Mutant("index changed", f"{index.name}: name", (drop, renamed.text))


def _additions(tables: tuple[Table, ...]) -> Iterator[Mutant]:
    """Yield a schema with one object more."""
    for name in ("surplus", "sqlitexevil", "sqlite1", "runs2"):
        yield Mutant("object added", f"table {name}", (f"CREATE TABLE {name} (a ANY) STRICT",))
    for table in tables:
        name = table.name
        column = next(item.name for item in table.items if item.is_column)
        yield from (
            Mutant("object added", f"{name}: {what}", (statement,))
            for what, statement in (
                ("index", f"CREATE INDEX surplus ON {name} ({column})"),
                ("view", f"CREATE VIEW surplus AS SELECT {column} FROM {name}"),
                ("trigger", f"CREATE TRIGGER surplus AFTER INSERT ON {name} BEGIN SELECT 1; END"),
            )
        )
        yield Mutant("table dropped", name, (f"DROP TABLE {name}",))


def _identities() -> Iterator[Mutant]:
    """Yield the right shape under another identity."""
    lax = "PRAGMA ignore_check_constraints = ON"
    for name, value in (
        ("application_id", 0), ("application_id", 7), ("user_version", 0), ("user_version", 2),
    ):  # fmt: skip
        yield Mutant("identity", f"{name} {value}", (f"PRAGMA {name} = {value}",))
    other_digest = bytes.fromhex(schema_digest_committed())[::-1].hex()
    yield from (
        Mutant("identity", what, (lax, statement))
        for what, statement in (
            ("no digest", "UPDATE schema_meta SET schema_digest = zeroblob(32)"),
            ("other digest", f"UPDATE schema_meta SET schema_digest = x'{other_digest}'"),
            ("other name", "UPDATE schema_meta SET schema_name = 'another'"),
            ("other version", "UPDATE schema_meta SET schema_version = 2"),
            ("none", "DELETE FROM schema_meta"),
            (
                "two",
                """
                INSERT INTO schema_meta
                SELECT 2, schema_name, schema_version, schema_digest, app_version, 0, 0
                FROM schema_meta
                """,
            ),
        )
    )


def _remade(family: str, what: str, table: Table, indexes: tuple[Index, ...]) -> Mutant:
    """Return the statements that put another table in the place of one, with its rows."""
    statements = [f"DROP TABLE {table.name}", table.text, *(index.text for index in indexes)]
    if table.name == _IDENTITY:
        statements.append(_identity_row(table))
    return Mutant(family, what, tuple(statements))


def _identity_row(table: Table) -> str:
    """Return the statement that says, in whatever columns there are, that the schema is ours."""
    values = {
        "id": "1",
        "schema_name": "'pi-workflows-state'",
        "schema_version": "1",
        "schema_digest": f"x'{schema_digest_committed()}'",
    }
    columns = [item.name for item in table.items if item.is_column]
    row = ", ".join(values.get(name.removesuffix("_2"), "0") for name in columns)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({row})"


def _closing(text: str, begin: int) -> int:
    """Return where the parenthesis ends that was opened just before."""
    depth = 1
    for at in range(begin, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at + 1
    raise AssertionError(text)
