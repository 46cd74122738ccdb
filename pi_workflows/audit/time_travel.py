"""What stood in a database at an earlier moment: its log replayed up to there."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.audit.damage import damage_of_file
from pi_workflows.base.errors import NotFound
from pi_workflows.base.sql import Read, load
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.kernel.rebuild import Replay
from pi_workflows.kernel.tree import tree_of
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_view import run_view

SQL: Final = load(__package__, "time_travel.sql")


class _Header(NamedTuple):
    resource_id: str
    event_type: str


class _Range(NamedTuple):
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Moment:
    """A run as it stood after a command.

    Attributes:
        asked_seq: The event that was asked for.
        event_seq: The last event of its command; of those that belong to the run's root tree, the
            last one up to there.
        at_ms: When that one was recorded.
        run_id: The run.
        content: The canonical bytes of its view, with no process alive.
        read: The database as it stood, while the context lasts.
    """

    asked_seq: int
    event_seq: int
    at_ms: int
    run_id: str
    content: bytes
    read: Snapshot


@contextmanager
def view_at(
    file: Path,
    *,
    live_directory: Path | None,
    event_seq: int,
    run_id: str | None = None,
    begun: Callable[[int], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
) -> Generator[Moment]:
    """Show a run as it was after an event's command.

    Only the events of the run's root tree are replayed.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        event_seq: The number of an event; the moment is the end of its command.
        run_id: The run that is shown; None shows the one that the event belongs to.
        begun: Called once with the number of the event.
        progress: Called with the number of events replayed so far.

    Returns:
        The moment, for as long as the body runs.

    Raises:
        NotFound: There is no such file, no such event (`eventMissing`), no such run
            (`runMissing`), the event belongs to no run (`eventWithoutRun`), or the run did not
            exist yet (`runMissing`).
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged, or its log cannot be replayed.
        Unavailable: The disk failed.
    """
    with open_inactive(file, live_directory=live_directory) as source, ExitStack() as stack:
        with damage_of_file():
            event = find_event(source, event_seq)
            shown = run_id or _run_of(source, event, event_seq)
            tree = tree_of(source, shown)
            begun(event_seq)
            target = stack.enter_context(scratch_beside(file))
            replay = Replay(source, target, PROJECTORS, of=tree.resource_ids)
            replay.advance(event_seq, progress)
            read = stack.enter_context(target.snapshot())
            content = _view(read, shown, event_seq)
        yield Moment(
            asked_seq=event_seq,
            event_seq=replay.event_seq,
            at_ms=replay.at_ms,
            run_id=shown,
            content=content,
            read=read,
        )


def find_event(read: Read, event_seq: int) -> _Header:
    """Return an event by its number. Raises NotFound (`eventMissing`), naming those there are."""
    found = read.one(_Header, SQL["header"], event_seq=event_seq)
    if found is not None:
        return found
    there = read.one(_Range, SQL["range"])
    known = "no event" if there is None or there.last is None else f"{there.first} to {there.last}"
    raise NotFound(
        f"There is no event {event_seq}; the file has {known}.", code="eventMissing", field="event"
    )


def _run_of(read: Read, event: _Header, event_seq: int) -> str:
    """Return the run that an event belongs to."""
    found = runs_of((read,), "resources", {"resource_id": event.resource_id})
    if not found:
        raise NotFound(
            f"Event {event_seq} ({event.event_type}) belongs to no run.",
            code="eventWithoutRun",
            field="event",
            hint="Name one: --run RUN",
        )
    return found[0]


def _view(read: Read, run_id: str, event_seq: int) -> bytes:
    """Return the view of a run in a database that was replayed up to an event."""
    try:
        return run_view(read, run_id, ProcessFacts(now_ms=0)).content
    except NotFound as error:
        raise NotFound(
            f"Run {run_id} did not exist yet at event {event_seq}.", code="runMissing", field="run"
        ) from error
