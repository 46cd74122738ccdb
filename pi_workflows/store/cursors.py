"""The cursors of one connection, each able to run one kind of statement only.

An authorizer alone is not enough: a statement that was prepared in one phase runs from the cache in
another. So the cursor that reads looks at each statement as it starts, and so does the one that
writes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.base.errors import Corrupt
from pi_workflows.store.errors import translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pi_workflows.base.sql import Row, SqlValue, Statement
    from pi_workflows.store.driver import Connection, Cursor, Values

# Comment lines and white space before a statement's first word.
_QUERY: Final = re.compile(r"(?:\s|--[^\n]*\n)*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)


class Cursors:
    """Run statements of one connection, and say what their failures mean.

    Attributes:
        connection: The connection; nobody else runs statements on it.
        lost: Why the transaction is gone although nobody ended it; None while it is not. SQLite
            ends one by itself when the disk is full or fails.
    """

    __slots__ = ("_control", "_queries", "_read", "_write", "connection", "lost")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.lost: Exception | None = None
        self._queries: set[str] = set()
        self._control = connection.cursor()
        self._read = connection.cursor()
        self._read.exec_trace = _only_reads
        self._write = connection.cursor()
        self._write.exec_trace = self._only_writes

    def rows(self, statement: Statement, values: Mapping[str, SqlValue]) -> list[Row]:
        """Run a query and return all of its rows.

        Raises:
            AssertionError: The statement is not a query.
            WorkflowsError: As `store.errors.translate`.
        """
        text = statement.text
        if text not in self._queries:
            self._check_query(statement)
        try:
            return self._read.execute(text, values).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error
        except UnicodeDecodeError as error:
            raise _no_text(statement) from error

    def stream(self, statement: Statement, values: Mapping[str, SqlValue]) -> Iterator[Row]:
        """Run a query and give its rows one by one, on a cursor of its own.

        Raises:
            As `rows`.
        """
        self._check_query(statement)
        cursor = self.connection.cursor()
        cursor.exec_trace = _only_reads
        try:
            yield from cursor.execute(statement.text, values)
        except apsw.Error as error:
            raise self._failed(error) from error
        except UnicodeDecodeError as error:
            raise _no_text(statement) from error

    def change(self, statement: Statement, values: Mapping[str, SqlValue]) -> int:
        """Run an INSERT, UPDATE or DELETE inside the open transaction.

        Returns:
            How many rows it changed by itself; those that a foreign key changed do not count.

        Raises:
            AssertionError: The statement does not write, gives rows, or no transaction is open.
            WorkflowsError: As `store.errors.translate`.
        """
        try:
            rows = self._write.execute(statement.text, values).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error
        assert not rows, f"{statement.name} is a write that gives rows"
        return self.connection.changes()

    def control(self, text: str) -> None:
        """Begin or end a transaction or savepoint, or set up the connection.

        Raises:
            apsw.Error: As SQLite says; what it means depends on the statement.
        """
        self._control.execute(text)

    def savepoint(self, text: str) -> None:
        """Begin or end a savepoint of the open transaction.

        Raises:
            AssertionError: No transaction is open: it would begin one.
            WorkflowsError: As `store.errors.translate`.
        """
        assert self.connection.in_transaction, f"{text} outside a transaction"
        try:
            self._control.execute(text)
        except apsw.Error as error:
            raise self._failed(error) from error

    def unresolved_keys(self) -> bool:
        """Return whether a foreign key is violated that is checked only at COMMIT."""
        return self.connection.status(apsw.SQLITE_DBSTATUS_DEFERRED_FKS)[0] != 0

    def _failed(self, error: apsw.Error) -> Exception:
        """Return what an error means, and remember when it ended the transaction."""
        meaning = translate(error)
        if self.lost is None and not self.connection.in_transaction:
            self.lost = meaning
        return meaning

    def _check_query(self, statement: Statement) -> None:
        """Refuse what is no query by its first word: COMMIT leaves the database as it is, too."""
        assert _QUERY.match(statement.text), f"{statement.name} is not a query"
        self._queries.add(statement.text)

    def _only_writes(self, cursor: Cursor, _sql: str, _values: Values | None) -> bool:
        """Let a statement start that writes, inside a transaction: alone it would commit itself."""
        assert not cursor.is_readonly, "a write that does not write"
        assert self.connection.in_transaction, "a write outside a transaction"
        return True


def _no_text(statement: Statement) -> Corrupt:
    """Return what bytes in a column of text mean that are none."""
    return Corrupt(f"A text that {statement.name} reads is not UTF-8; nothing was changed.")


def _only_reads(cursor: Cursor, _sql: str, _values: Values | None) -> bool:
    """Let a statement start that leaves the database as it is."""
    assert cursor.is_readonly, "a read that writes"
    return True
