"""The one connection that writes, and the bounds of its transactions."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from pi_workflows.base.errors import OutcomeUnknown
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.errors import translate
from pi_workflows.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Generator

    from pi_workflows.store.content import Documents
    from pi_workflows.store.driver import Connection


class Writer:
    """Begin and end write transactions on a connection.

    Attributes:
        connection: The connection, owned by whoever made this.
        cursors: Its cursors.
    """

    __slots__ = ("_documents", "_pid", "_thread", "connection", "cursors")

    def __init__(self, connection: Connection, documents: Documents) -> None:
        self.connection = connection
        self.cursors = Cursors(connection)
        self._documents = documents
        self._pid = os.getpid()
        self._thread = threading.get_ident()

    def check_owner(self) -> None:
        """Assert that this is the process and thread that opened the connection.

        A connection that crossed a fork shares its locks with nobody and its file with both.
        """
        assert self._pid == os.getpid(), "a database connection crossed a fork"
        assert self._thread == threading.get_ident(), "a database connection crossed threads"

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Run the body between BEGIN IMMEDIATE and COMMIT; an exception undoes all of it.

        Raises:
            Unavailable: The disk is full or failed and nothing is left of the transaction, or
                another process holds the database.
            OutcomeUnknown: COMMIT failed; whether it is durable shows only after a restart. Nothing
                more may be done with this connection but to abandon it.
            AssertionError: Another transaction is open, a foreign key is left open, or this is
                another process or thread.
        """
        self.check_owner()
        cursors = self.cursors
        assert not self.connection.in_transaction, "a transaction inside another one"
        cursors.lost = None
        try:
            cursors.control("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise translate(error) from error
        transaction = Transaction(cursors, self._documents)
        try:
            yield transaction
            self._check_complete()
        except BaseException:
            self._roll_back()
            raise
        self._commit()

    def _check_complete(self) -> None:
        """Refuse to commit what SQLite has ended already, and what COMMIT would refuse."""
        if self.cursors.lost is not None:
            raise self.cursors.lost
        assert not self.cursors.unresolved_keys(), "a foreign key is left open"

    def _roll_back(self) -> None:
        """Undo the transaction; SQLite may have done so already."""
        if not self.connection.in_transaction:
            return
        try:
            self.cursors.control("ROLLBACK")
        except apsw.Error as error:
            raise translate(error) from error

    def _commit(self) -> None:
        """Commit, or say whether anything may be left of it.

        After a failed sync SQLite says that it rolled back while the disk may hold every byte (the
        reliability design, section 3); only a full disk is known to leave nothing.
        """
        try:
            self.cursors.control("COMMIT")
        except apsw.FullError as error:
            if not self.connection.in_transaction:
                raise translate(error) from error
            raise OutcomeUnknown("COMMIT failed; the server must restart.") from error
        except apsw.Error as error:
            raise OutcomeUnknown("COMMIT failed; the server must restart.") from error
