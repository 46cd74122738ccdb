"""One root tree as a database of its own, to be handed to somebody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.audit.damage import damage_of_file
from pi_workflows.base.clock import SystemClock
from pi_workflows.base.sql import load
from pi_workflows.base.version import package_version
from pi_workflows.kernel.tree import tree_of
from pi_workflows.kernel.verify import Verification, verify
from pi_workflows.store.copying import copy_tree
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.new_database import new_database

SQL: Final = load(__package__, "capsule.sql")


class _Counts(NamedTuple):
    events: int
    blobs: int


@dataclass(frozen=True, slots=True)
class Capsule:
    """A capsule that was written.

    Attributes:
        run_ids: The runs of the tree, in order.
        event_count: Its events.
        blob_count: Its values.
        file_bytes: The file's length.
        left_out: Tables of which rows belong to the tree and were left behind, with their number.
        verification: What the full verification of the new file found; it is written all the same,
            since what is broken is what one hands on.
    """

    run_ids: tuple[str, ...]
    event_count: int
    blob_count: int
    file_bytes: int
    left_out: dict[str, int]
    verification: Verification


def write_capsule(
    file: Path,
    destination: Path,
    *,
    live_directory: Path | None,
    run_id: str,
    progress: Callable[[str, int], None] = lambda _name, _count: None,
) -> Capsule:
    """Write the root tree of a run as a database of the same schema.

    It has the tree's events, receipts, values and rows as they stand, and nothing else (decision on
    capsules): what may be asked of a backup may be asked of it.

    Args:
        file: The database; nothing is written into it.
        destination: The new file, absolute; nothing has that name. Its mode is 0600.
        live_directory: The state directory, whose database is refused by any path.
        run_id: A run of the tree.
        progress: Called with the name of the check under way and the rows that it has read.

    Returns:
        What was written.

    Raises:
        NotFound: There is no such file or no such run.
        PayloadInvalid: The destination exists, or cannot be one.
        AuthorityDenied: The file is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged so far that rows cannot be read.
        Unavailable: The disk is full or failed; no file is left.
    """
    with open_inactive(file, live_directory=live_directory) as source:
        with damage_of_file():
            tree = tree_of(source, run_id)
        now_ms = SystemClock().now_ms()
        with (
            new_database(destination, now_ms=now_ms, app_version=package_version()) as target,
            damage_of_file(),
        ):
            left_out = copy_tree(
                source, target, run_ids=tree.run_ids, resource_ids=tree.resource_ids
            )
            with target.snapshot() as read:
                counts = read.one(_Counts, SQL["counts"])
                found = verify(
                    read,
                    quick=False,
                    scratch=partial(scratch_beside, destination),
                    projectors=PROJECTORS,
                    progress=progress,
                )
    assert counts is not None, "an aggregate without a row"
    return Capsule(
        run_ids=tree.run_ids,
        event_count=counts.events,
        blob_count=counts.blobs,
        file_bytes=destination.stat().st_size,
        left_out=left_out,
        verification=found,
    )
