"""What figures are laid beside: the raw library, committing row by row to the same disk."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.figure import Figure, seconds
from pi_workflows.store.driver import Connection, connect

METRIC: Final = "raw APSW commits"
SYSTEM: Final = "raw APSW"
# Of one round, at scale 1.
_COMMITS: Final = 200
_PAYLOAD: Final = b"x" * 200


class Anchor:
    """A database of one table, in write-ahead mode, which syncs at each commit.

    Attributes:
        rates: Commits a second, of each round so far.
    """

    def __init__(self, connection: Connection, commits: int) -> None:
        """Take over an open database that has the table; use `anchor`."""
        self._connection = connection
        self._commits = commits
        self.rates: list[float] = []

    def round(self) -> float:
        """Commit rows one by one; return and keep how many a second."""
        rate = self._commits / seconds(self._commit_each)
        self.rates.append(rate)
        return rate

    def figure(self, median: float) -> Figure:
        """Return the line that stands beside the others."""
        return Figure(SYSTEM, METRIC, median, "commits/s", durable=True, n=self._commits)

    def _commit_each(self) -> None:
        """Commit single rows."""
        for _ in range(self._commits):
            self._connection.execute("INSERT INTO row (content) VALUES (?)", (_PAYLOAD,))


@contextmanager
def anchor(directory: Path, scale: float) -> Generator[Anchor]:
    """Keep such a database for as long as the body runs.

    Args:
        directory: Where it lies: on the disk that the measured one lies on.
        scale: Factor on the number of commits.
    """
    connection = connect(str(directory / "anchor.sqlite"))
    try:
        assert connection.pragma("journal_mode", "WAL") == "wal"
        connection.pragma("synchronous", "FULL")
        connection.execute(
            "CREATE TABLE row (id INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT"
        )
        yield Anchor(connection, max(1, round(_COMMITS * scale)))
    finally:
        connection.close()
