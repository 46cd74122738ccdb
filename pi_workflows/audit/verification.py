"""Verifying a database that no server has open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.kernel.verify import Verification, verify
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.log import high_water_mark

__all__ = ["Verification", "verify_file"]


def verify_file(
    file: Path,
    *,
    live_directory: Path | None,
    is_quick: bool,
    begun: Callable[[int], None] = lambda _: None,
    progress: Callable[[str, int], None] = lambda _name, _count: None,
) -> Verification:
    """Check everything that must hold in a file.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        is_quick: Leave out digests and the replay of the log.
        begun: Called once with the number of events in the file.
        progress: Called with the name of the check under way and the rows that it has read.

    Returns:
        The result; a damaged database is a result too.

    Raises:
        NotFound: There is no such file.
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged beyond reading.
        Unavailable: The disk failed.
    """
    with open_inactive(file, live_directory=live_directory) as source:
        begun(high_water_mark(source))
        return verify(
            source,
            quick=is_quick,
            scratch=partial(scratch_beside, file),
            projectors=PROJECTORS,
            progress=progress,
        )
