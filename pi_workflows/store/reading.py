"""What deciders, views and projectors are handed: reads, and for projectors writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pi_workflows.store.content import put_blob, read_blob

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_workflows.base.blob import Blob
    from pi_workflows.base.sql import SqlValue, Statement
    from pi_workflows.store.content import Documents
    from pi_workflows.store.cursors import Cursors

T = TypeVar("T")


class _Rows:
    """Queries of one transaction."""

    __slots__ = ("_cursors",)

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors

    def one(self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue) -> T | None:
        """Return the only row as `shape`, or None. More than one is our bug (AssertionError)."""
        rows = self._cursors.rows(statement, values)
        if not rows:
            return None
        assert len(rows) == 1, f"{statement.name} found {len(rows)} rows"
        return shape(*rows[0])

    def all(self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue) -> list[T]:
        """Return every row as `shape`, in the statement's order."""
        return [shape(*row) for row in self._cursors.rows(statement, values)]


class Reading(_Rows):
    """`base.sql.Read`: everything may be read, nothing written."""

    __slots__ = ("_documents",)

    def __init__(self, cursors: Cursors, documents: Documents) -> None:
        super().__init__(cursors)
        self._documents = documents

    def blob(self, digest: bytes) -> bytes:
        """Return the bytes stored under a digest. Missing ones are Corrupt."""
        return read_blob(self._cursors, digest)

    def document(self, parse: Callable[[bytes], T], digest: bytes) -> T:
        """Return `parse` of the bytes under a digest, remembered. It must not be changed."""
        return self._documents.get(self._cursors, parse, digest)


class Projecting(_Rows):
    """`base.sql.Projection`: rows may be read and written, content written alone."""

    __slots__ = ()

    def keep(self, blob: Blob, at_ms: int) -> None:
        """Store content under its digest or adopt what is there, as `content.put_blob`."""
        put_blob(self._cursors, blob, at_ms)

    def write(self, statement: Statement, /, **values: SqlValue) -> None:
        """Run a write that changes exactly one row. Anything else is our bug (AssertionError)."""
        changed = self._cursors.change(statement, values)
        assert changed == 1, f"{statement.name} changed {changed} rows"

    def write_any(self, statement: Statement, /, **values: SqlValue) -> int:
        """Run a write that changes any number of rows; return how many."""
        return self._cursors.change(statement, values)
