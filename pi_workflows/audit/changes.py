"""What changed between two moments of a database: its log replayed up to one, then the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.audit.damage import damage_of_file
from pi_workflows.audit.time_travel import find_event
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import CHANGED_ROWS_MAX
from pi_workflows.base.sql import SqlValue
from pi_workflows.kernel.comparison import Difference, compare
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.kernel.rebuild import Replay
from pi_workflows.kernel.tree import tree_of
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.snapshot import Snapshot

# Who exactly it was stays in the file.
_PRIVATE: Final = frozenset({"actor_id", "owner_id"})
# What the log itself is: new with every event.
_LOG: Final = "event_blobs"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column of a row at both moments; None where the row was not there, or holds nothing."""

    name: str
    before: SqlValue
    after: SqlValue


@dataclass(frozen=True, slots=True)
class Change:
    """A row that is not the same at both moments.

    Attributes:
        table: Its table.
        key: What identifies it: the columns of the key with their values.
        is_added: Whether it was not there before.
        is_removed: Whether it is no longer there.
        columns: What differs, without the key and without private identities.
        run_ids: The runs that it belongs to.
    """

    table: str
    key: Mapping[str, SqlValue]
    is_added: bool
    is_removed: bool
    columns: tuple[ColumnChange, ...]
    run_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that changed.

    Attributes:
        from_seq: The last event of the earlier moment; 0 before the first.
        to_seq: The last event of the later one.
        changes: The rows, table by table in the order of their keys.
        is_partial: Whether a table has more of them than are named.
    """

    from_seq: int
    to_seq: int
    changes: tuple[Change, ...]
    is_partial: bool


def changes_between(
    file: Path,
    *,
    live_directory: Path | None,
    from_seq: int,
    to_seq: int,
    run_id: str | None = None,
    begun: Callable[[int], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Changes:
    """Compare what stood after one event's command with what stood after another's.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        from_seq: The number of the earlier event; 0 is before the first.
        to_seq: The number of the later one.
        run_id: The run whose rows are compared; None compares all.
        begun: Called once with the number of the later event.
        progress: Called with the number of events replayed so far.

    Returns:
        The changes, at most 1,000 rows of each table.

    Raises:
        PayloadInvalid: The later event comes before the earlier one.
        NotFound: There is no such file, event or run.
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged, or its log cannot be replayed.
        Unavailable: The disk failed.
    """
    if from_seq > to_seq:
        raise PayloadInvalid(
            f"Event {to_seq} does not come after event {from_seq}.", code="order", field="to"
        )
    with open_inactive(file, live_directory=live_directory) as source, damage_of_file():
        for event_seq in {from_seq, to_seq} - {0}:
            find_event(source, event_seq)
        only = None if run_id is None else tree_of(source, run_id).resource_ids
        begun(to_seq)
        with scratch_beside(file) as before, scratch_beside(file) as after:
            replay = Replay(source, after, PROJECTORS, of=only)
            replay.advance(from_seq, progress)
            earlier_seq = replay.event_seq
            after.copy_to(before)
            replay.advance(to_seq, progress)
            with before.snapshot() as left, after.snapshot() as right:
                differing = compare(left, right, rows_max=CHANGED_ROWS_MAX + 1)
                found = [each for each in differing if each.table != _LOG]
                changes = [_change(left, right, each) for each in _bounded(found)]
    return Changes(
        from_seq=earlier_seq,
        to_seq=replay.event_seq,
        changes=tuple(each for each in changes if run_id is None or run_id in each.run_ids),
        is_partial=len(changes) < len(found),
    )


def _bounded(found: Iterable[Difference]) -> Iterable[Difference]:
    """Yield the rows that are named, and leave out those over the limit of their table."""
    counts: dict[str, int] = {}
    for each in found:
        counts[each.table] = counts.get(each.table, 0) + 1
        if counts[each.table] <= CHANGED_ROWS_MAX:
            yield each


def _change(left: Snapshot, right: Snapshot, found: Difference) -> Change:
    """Return a difference as a change from the left to the right."""
    key = found.key
    before, after = found.values(found.left), found.values(found.right)
    return Change(
        table=found.table,
        key=key,
        is_added=found.left is None,
        is_removed=found.right is None,
        columns=tuple(
            ColumnChange(name, before.get(name), after.get(name))
            for name in found.columns
            if name not in key and name not in _PRIVATE
        ),
        run_ids=runs_of((left, right), found.table, key),
    )
