"""Rows of one database in another of the same schema: a root tree, or what no log gives again.

A copy, as a backup is one: rows arrive as they stand, whatever the log says about them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.base import canonical
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.sql import load
from pi_workflows.store.descriptor import DESCRIPTORS
from pi_workflows.store.errors import translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pi_workflows.base.canonical import Json
    from pi_workflows.base.sql import SqlValue, Statement
    from pi_workflows.store.scratch import Scratch
    from pi_workflows.store.snapshot import Snapshot

_SQL: Final = load(__package__, "copying.sql")
TREE: Final = load(__package__, "tree_copy.sql")
_JOURNALS: Final = load(__package__, "journal_copy.sql")


def copy_tree(
    source: Snapshot, target: Scratch, *, run_ids: Iterable[str], resource_ids: Iterable[str]
) -> dict[str, int]:
    """Copy everything that a root tree owns into an empty database.

    Args:
        source: The database that has it; an inactive file.
        target: The empty database.
        run_ids: The runs of the tree.
        resource_ids: The resources that they own.

    Returns:
        The tables of which rows belong to the tree and were left behind, with their number.

    Raises:
        Corrupt: A row cannot be read, or the schema refuses it.
        Unavailable: The disk is full or failed.
    """
    values: dict[str, SqlValue] = {"run_ids": _list(run_ids), "resource_ids": _list(resource_ids)}
    return _copy(source, target, TREE.values(), values)


def copy_journals(source: Snapshot, target: Scratch) -> None:
    """Copy what no log gives again into a database that a rebuild has filled.

    Args:
        source: The database whose log was replayed; an inactive file.
        target: The rebuilt one.

    Raises:
        Corrupt: A row cannot be read, or the schema refuses it.
        Unavailable: The disk is full or failed.
    """
    _copy(source, target, _JOURNALS.values(), {"run_ids": "[]"})


def _copy(
    source: Snapshot,
    target: Scratch,
    statements: Iterable[Statement],
    values: Mapping[str, SqlValue],
) -> dict[str, int]:
    """Run statements that read an attached database, all or none of them."""
    connection = target.connection
    guard = connection.authorizer
    connection.authorizer = None
    try:
        # Rows are copied as they stand. What is wrong with them the verification finds.
        connection.pragma("foreign_keys", "OFF")
        connection.pragma("ignore_check_constraints", "ON")
        uri = f"file://{source.file}?mode=ro&vfs={DESCRIPTORS}"
        connection.execute(_SQL["attach"].text, {"uri": uri})
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement.text, dict(values))
        connection.execute("COMMIT")
        found = connection.execute(_SQL["left_out"].text, dict(values)).fetchall()
        connection.execute("DETACH source")
        connection.pragma("ignore_check_constraints", "OFF")
        connection.pragma("foreign_keys", "ON")
    except apsw.ConstraintError as error:
        raise Corrupt("Two rows of the database have one key; they cannot be copied.") from error
    except apsw.Error as error:
        raise translate(error) from error
    finally:
        connection.authorizer = guard
    return {str(table): int(count) for table, count in found if count}


def _list(items: Iterable[str]) -> str:
    """Return texts as a JSON array."""
    listed: list[Json] = list(items)
    return canonical.encode(listed).decode()
