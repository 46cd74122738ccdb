"""Replaying the log of a database that no server has open, and comparing every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.kernel.comparison import Difference, compare
from pi_workflows.kernel.rebuild import rebuild
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.log import high_water_mark

__all__ = ["Difference", "Rebuilt", "rebuild_file"]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a replay gave.

    Attributes:
        event_count: How many events were replayed.
        differences: The rows that are not as the log gives them, at most 20 a table.
    """

    event_count: int
    differences: tuple[Difference, ...]

    @property
    def is_identical(self) -> bool:
        """Whether the log gives exactly the rows that stand in the file."""
        return not self.differences


def rebuild_file(
    file: Path,
    *,
    live_directory: Path | None,
    begun: Callable[[int], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Rebuilt:
    """Replay a file's log into an empty database and compare the two.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        begun: Called once with the number of events in the file.
        progress: Called with the number of events replayed so far.

    Returns:
        The differences.

    Raises:
        NotFound: There is no such file.
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged, or its log cannot be replayed.
        Unavailable: The disk failed.
    """
    with (
        open_inactive(file, live_directory=live_directory) as source,
        scratch_beside(file) as target,
    ):
        begun(high_water_mark(source))
        count = rebuild(source, target, PROJECTORS, progress)
        with target.snapshot() as rebuilt:
            return Rebuilt(count, tuple(compare(source, rebuilt)))
