"""SQL as SQL: named statements from `.sql` files, and what may be done with them.

A file holds statements, after an introduction for readers, each under a line `-- name:
<snake_case>` and comment lines that say why. Deciders and
views get `Read`, which cannot write; projectors get `Projection`. Neither ever sees a connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pi_workflows.base.blob import Blob

SqlValue: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[SqlValue, ...]
T = TypeVar("T")

_NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)$", re.MULTILINE)
# The lines that say why stay in the file: a trace takes a text that begins so for a trigger's.
_COMMENTS = re.compile(r"\A(?:\s|--[^\n]*\n)*")


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement: its name for people, its text for SQLite.

    Parameters are named (`:run_id`).
    """

    name: str
    text: str


def plain(*values: SqlValue) -> Row:
    """Return a row as a plain tuple: the shape of one whose columns are not known by name."""
    return values


class Rows(Protocol):
    """Rows inside one transaction, without the content that they name.

    They come as the NamedTuple `shape`, whose fields are the columns in order.
    """

    def one(self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue) -> T | None:
        """Return the only row, or None. More than one row is our bug (AssertionError)."""
        ...

    def all(self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue) -> list[T]:
        """Return every row, in the statement's order; the statement bounds their number."""
        ...


class Read(Rows, Protocol):
    """Reads inside one transaction."""

    def blob(self, digest: bytes) -> bytes:
        """Return the bytes stored under a SHA-256 digest. A missing blob is Corrupt."""
        ...

    def document(self, parse: Callable[[bytes], T], digest: bytes) -> T:
        """Return `parse(blob(digest))`, remembered by (parse, digest).

        A digest never changes its bytes.
        """
        ...


class Projection(Rows, Protocol):
    """What a projector may do.

    Read projections and journals, write its own tables; never read a blob's content.
    """

    def keep(self, blob: Blob, at_ms: int) -> None:
        """Store content that a row of the projection names, or adopt what is there."""
        ...

    def write(self, statement: Statement, /, **values: SqlValue) -> None:
        """Run a write that must change exactly one row; anything else is our bug.

        AssertionError.
        """
        ...

    def write_any(self, statement: Statement, /, **values: SqlValue) -> int:
        """Run a write that may change any number of rows; return how many."""
        ...


def load(package: str | None, name: str) -> Mapping[str, Statement]:
    """Read the named statements of `<package>/<name>`.

    Args:
        package: The importing module's `__package__`.
        name: The file's name, such as `reads.sql`.

    Returns:
        The statements by name.

    Raises:
        AssertionError: The file has no named statement, or one name twice.
    """
    assert package, "a module outside a package has no SQL"
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    found = list(_NAME.finditer(text))
    assert found, f"{package}/{name}: no named statement"
    statements: dict[str, Statement] = {}
    for match, following in zip(found, [*found[1:], None], strict=True):
        body = text[match.end() : following.start() if following else len(text)]
        key = match["name"]
        assert key not in statements, f"{package}/{name}: {key} twice"
        statements[key] = Statement(key, _COMMENTS.sub("", body).strip())
    return statements
