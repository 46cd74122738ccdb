"""Replaying the log of a database that no server has open, and comparing every row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.audit.damage import damage_of_file
from pi_workflows.base.clock import SystemClock
from pi_workflows.base.version import package_version
from pi_workflows.kernel.comparison import Difference, compare
from pi_workflows.kernel.rebuild import rebuild
from pi_workflows.store.copying import copy_journals
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.log import high_water_mark
from pi_workflows.store.new_database import new_database
from pi_workflows.store.scratch import Scratch

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
    to: Path | None = None,
    begun: Callable[[int], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Rebuilt:
    """Replay a file's log into an empty database and compare the two.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        to: Keep the rebuilt database as a new file, absolute, with the receipts and captured
            sessions that no log gives again; None keeps nothing.
        begun: Called once with the number of events in the file.
        progress: Called with the number of events replayed so far.

    Returns:
        The differences.

    Raises:
        NotFound: There is no such file.
        PayloadInvalid: The new file exists, or cannot be one.
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged, or its log cannot be replayed.
        Unavailable: The disk failed; no new file is left.
    """
    with (
        open_inactive(file, live_directory=live_directory) as source,
        _target(file, to) as target,
        damage_of_file(),
    ):
        begun(high_water_mark(source))
        count = rebuild(source, target, PROJECTORS, progress)
        with target.snapshot() as rebuilt:
            found = Rebuilt(count, tuple(compare(source, rebuilt)))
        if to is not None:
            copy_journals(source, target)
        return found


def _target(file: Path, to: Path | None) -> AbstractContextManager[Scratch]:
    """Return the empty database that is filled: a new file, or one that nobody keeps."""
    if to is None:
        return scratch_beside(file)
    return new_database(to, now_ms=SystemClock().now_ms(), app_version=package_version())
