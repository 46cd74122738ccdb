"""One consistent read of a database, and what only a verification asks of it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import apsw

from pi_workflows.base.sql import load
from pi_workflows.store.errors import translate
from pi_workflows.store.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pi_workflows.base.sql import SqlValue, Statement
    from pi_workflows.store.content import Documents
    from pi_workflows.store.cursors import Cursors

T = TypeVar("T")

_SQL = load(__package__, "snapshot.sql")
# Steps of SQLite between two looks: a millisecond or less, a thousand times what a look costs.
_LOOK_STEPS: Final = 4_000


class Pages(NamedTuple):
    """How large a database is: pages of it, free ones among them, and the bytes of one."""

    page_count: int
    freelist_count: int
    page_bytes: int


class ForeignKeyViolation(NamedTuple):
    """A row whose foreign key names nothing; `row_id` is None in a table without rowid."""

    table: str
    row_id: int | None
    parent: str
    key: int


class Snapshot(Reading):
    """`base.sql.Read` over one moment of a database, and the checks that read all of it."""

    __slots__ = ()

    @property
    def file(self) -> str:
        """The file that is read, as its connection names it; empty of a database in memory."""
        return self._cursors.connection.filename

    def each(
        self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue
    ) -> Iterator[T]:
        """Give rows one by one, however many there are, as `shape`."""
        for row in self._cursors.stream(statement, values):
            yield shape(*row)

    @contextmanager
    def watched(self, look: Callable[[], None]) -> Generator[None]:
        """Look around again and again while a body runs, also inside of one long statement.

        Args:
            look: Called each millisecond or so of SQLite's work, in the thread that reads. What it
                raises ends the statement under way, and leaves it as it was raised.
        """

        def ask() -> bool:
            look()
            return False

        self._cursors.connection.set_progress_handler(ask, _LOOK_STEPS)
        try:
            yield
        finally:
            self._cursors.connection.set_progress_handler(None)

    def integrity(self) -> list[str]:
        """Return what SQLite's integrity check finds, at most 100 lines; none when all is well."""
        lines = [str(row[0]) for row in self._cursors.rows(_SQL["integrity"], {})]
        return [] if lines == ["ok"] else lines

    def foreign_keys(self) -> list[ForeignKeyViolation]:
        """Return every row whose foreign key names nothing."""
        return self.all(ForeignKeyViolation, _SQL["foreign_keys"])

    def pages(self) -> Pages:
        """Return how large the database is."""
        found = self.one(Pages, _SQL["pages"])
        assert found is not None, "a row without a table"
        return found


@contextmanager
def snapshot_of(cursors: Cursors, documents: Documents) -> Generator[Snapshot]:
    """Read one moment of a database for as long as the body runs.

    Raises:
        AssertionError: Another read or write of this connection is under way.
        WorkflowsError: As `store.errors.translate`.
    """
    assert not cursors.connection.in_transaction, "a read inside another transaction"
    cursors.lost = None
    try:
        cursors.control("BEGIN DEFERRED")
    except apsw.Error as error:
        raise translate(error) from error
    try:
        yield Snapshot(cursors, documents)
    finally:
        _end(cursors)


def _end(cursors: Cursors) -> None:
    """End a read; nothing hangs on it, and SQLite may have ended it after a failure."""
    if cursors.connection.in_transaction:
        with suppress(apsw.Error):
            cursors.control("ROLLBACK")
