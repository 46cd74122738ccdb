"""`runs`: the run list."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import RevisionConflict, Unavailable
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.base.vocabulary import DisplayStatus
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.failure import INTERRUPTED
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import age
from pi_workflows.cli.outcome import DEADLINE
from pi_workflows.cli.output import Output
from pi_workflows.cli.picture import Scene, status_span
from pi_workflows.cli.run_list import RunListItem
from pi_workflows.cli.table import Cell, short_ids, write_table
from pi_workflows.cli.workflow_target import project_path
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.envelope import EventKind
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.views import (
    RunFilter,
    RunListPage,
    SubscriptionFailure,
    ViewRunsPage,
)

_MS_PER_SECOND: Final = 1_000
# A drawn ID behind a name of usual length is shown whole.
_ID_CHARS_MIN: Final = 26
# A list that changes while it is read is read again this often.
_TRIES: Final = 5
# The headings, how many more there are, and the line of the cursor.
_LINES_AROUND: Final = 3


@dataclass(frozen=True, slots=True)
class Listing:
    """What `runs` was told.

    Attributes:
        status: Only runs that stand so.
        project: Only runs of this directory.
        limit: How many.
        cursor: How many are left out at the front.
        follow: Show the list again when it changes.
        deadline: Seconds to follow; None without end.
    """

    status: DisplayStatus | None
    project: Path | None
    limit: int
    cursor: int
    follow: bool
    deadline: float | None


def list_runs(invocation: Invocation, asked: Listing) -> int:
    """List runs, newest first.

    Returns:
        The exit code.

    Raises:
        WrongUsage: The project's directory does not exist.
        Unavailable: As `Client.request`.
    """
    where = RunFilter(
        status=asked.status,
        project_path=None if asked.project is None else project_path(asked.project),
    )
    with client(invocation) as server:
        if not asked.follow:
            _write(invocation.output, _page(server, where, asked))
            return 0
        return _follow(invocation, server, where, asked)


def _page(server: Client, where: RunFilter, asked: Listing) -> RunListPage:
    """Read a part of the list."""
    first = ViewRunsPage(limit=asked.limit if asked.cursor == 0 else 1, filter=where)
    page = RunListPage.parse(ask(server, Operation.VIEW_RUNS_PAGE, first).receipt)
    for _ in range(_TRIES):
        if asked.cursor == 0:
            return page
        # A place in the list means something at one revision of it only.
        at = ViewRunsPage(
            limit=asked.limit, filter=where, cursor=asked.cursor, revision=page.revision
        )
        reply = server.request(Operation.VIEW_RUNS_PAGE, at)
        if reply.is_done:
            return RunListPage.parse(reply.receipt)
        page = RunListPage.parse(ask(server, Operation.VIEW_RUNS_PAGE, first).receipt)
    raise RevisionConflict("The list of runs changes faster than it can be read.")


def _write(output: Output, page: RunListPage, *, rows_max: int | None = None) -> None:
    """Write a part of the list; `rows_max` is how much of it the window holds."""
    if output.is_json:
        output.document(page.document())
        return
    rows = list(_rows(output, page))[:rows_max]
    if not rows:
        output.note(
            "No runs." if page.total == 0 else f"No runs there; the list has {page.total:,}."
        )
        return
    write_table(
        output, ("status", "run", "age", "workflow", "title"), rows, numbers=frozenset({"age"})
    )
    rest = page.total - page.start - len(rows)
    if rest > 0:
        end = page.start + len(rows)
        how = "" if rows_max is not None else f": pi-workflows runs --cursor {end}"
        output.note(f"{rest:,} more{how}")


def _rows(output: Output, page: RunListPage) -> Iterator[list[Cell]]:
    """Yield a row for each run."""
    scene = Scene(now_ms=SystemClock().now_ms())
    items = [RunListItem.parse(document) for document in page.items]
    names = short_ids(output, [item.run_id for item in items], chars_min=_ID_CHARS_MIN)
    for item in items:
        yield [
            status_span(item.display.status, scene),
            names[item.run_id],
            age(scene.now_ms - item.created_at),
            item.workflow_name,
            _about(item),
        ]


def _about(item: RunListItem) -> str:
    """Return a run's title, and why it stands as it does where that needs somebody."""
    title = item.run_title or ""
    needs_words = item.display.status in ("failed", "timed_out", "ambiguous") or (
        item.display.status == "queued" and item.possibly_interrupted
    )
    if not needs_words or not item.display.reason:
        return title
    return f"{title}: {item.display.reason}" if title else item.display.reason


def _follow(invocation: Invocation, server: Client, where: RunFilter, asked: Listing) -> int:
    """Show the list whenever it changes, until somebody ends it or time is up."""
    output = invocation.output
    clock = SystemClock()
    until_ms = None
    if asked.deadline is not None:
        until_ms = clock.monotonic_ns() // NS_PER_MS + int(asked.deadline * _MS_PER_SECOND)
    subscription = server.watch(None, limit=1)
    shown: RunListPage | None = None
    try:
        while True:
            left_ms = None if until_ms is None else until_ms - clock.monotonic_ns() // NS_PER_MS
            if left_ms is not None and left_ms <= 0:
                return _end(output, "deadline", DEADLINE)
            event = server.next_event(subscription, timeout_ms=left_ms)
            if event is None:
                continue
            if event.event is EventKind.UNAVAILABLE:
                failure = SubscriptionFailure.parse(event.payload)
                if failure.reason_code != "connection_lost":
                    raise Unavailable(failure.message, code="serverUnreachable")
                output.note("The server is gone; reconnecting.")
                continue
            page = _page(server, where, asked)
            if page != shown:
                shown = page
                _clear(output)
                _write(output, page, rows_max=_rows_max(output))
    except KeyboardInterrupt:
        return _end(output, "interrupted", INTERRUPTED)


def _clear(output: Output) -> None:
    """Take the last list off the screen."""
    if output.is_terminal and not output.is_json:
        output.console().clear()


def _rows_max(output: Output) -> int | None:
    """Return how many rows of a list that is shown again the window holds."""
    if not output.is_terminal or output.is_json:
        return None
    return max(1, shutil.get_terminal_size().lines - _LINES_AROUND)


def _end(output: Output, outcome: str, exit_code: int) -> int:
    """Write the last line of a list that was followed."""
    if output.is_json:
        output.document(
            {
                "schema": "pi-workflows.cli-end.v1",
                "outcome": outcome,
                "exitCode": exit_code,
                "final": True,
            }
        )
    return exit_code
