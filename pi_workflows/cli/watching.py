"""`watch`, `view` and `events`: following runs that exist, or that will."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import WrongUsage
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.following import Detail, Followed, Follower, Listener
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.listeners import (
    ChangeDocuments,
    ChangeLines,
    Silence,
    end_document,
    end_line,
)
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.outcome import Outcome
from pi_workflows.cli.output import Output, plain
from pi_workflows.cli.picture import Scene, picture
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_view import RunView
from pi_workflows.cli.source import source
from pi_workflows.cli.trace import Columns, change_document, change_lines, described
from pi_workflows.cli.trace_pages import errors_of, trace_page
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.wire import is_run_id

_MS_PER_SECOND: Final = 1_000


@dataclass(frozen=True, slots=True)
class Watch:
    """What `watch` was told.

    Attributes:
        runs: IDs or prefixes; whole IDs when they are waited for.
        from_seq: Events up to this number are left out.
        deadline: Seconds; None without end.
        waits_for_runs: A run that does not exist is waited for.
        until_end: A run that stands still is followed on.
        fail_fast: The first failure ends everything.
    """

    runs: tuple[str, ...]
    from_seq: int = 0
    deadline: float | None = None
    waits_for_runs: bool = False
    until_end: bool = False
    fail_fast: bool = False


def watch_runs(invocation: Invocation, asked: Watch) -> int:
    """Follow runs until each has ended or stands still.

    Returns:
        The highest exit code of the runs.

    Raises:
        WrongUsage: A run that is waited for has no possible ID.
        NotFound: A run does not exist.
        Unavailable: As `Client.request`.
    """
    if asked.waits_for_runs:
        _require_ids(asked.runs)
    with client(invocation) as server:
        run_ids = asked.runs
        if not asked.waits_for_runs:
            run_ids = tuple(run_id_of(server, typed) for typed in asked.runs)
        return _watch(invocation, server, tuple(dict.fromkeys(run_ids)), asked)


def _require_ids(names: Sequence[str]) -> None:
    """Refuse what can never be a run's ID."""
    for name in names:
        if not is_run_id(name):
            raise WrongUsage(
                f"--wait-for: {name} is no run ID",
                code="runIdInvalid",
                field="RUN",
                hint="Give the whole ID of the run that will be started.",
            )


def _watch(invocation: Invocation, server: Client, run_ids: tuple[str, ...], asked: Watch) -> int:
    """Follow runs whose IDs are known."""
    invocation.followed = run_ids
    output = invocation.output

    def follower(listener: Listener) -> Follower:
        return Follower(
            server,
            run_ids,
            listener,
            from_seq=asked.from_seq,
            deadline_ms=_milliseconds(asked.deadline),
            waits_for_runs=asked.waits_for_runs,
            until_end=asked.until_end,
            fail_fast=asked.fail_fast,
        )

    if output.is_json:
        return follower(ChangeDocuments(output, has_display=True)).follow()
    if not (output.is_terminal and output.shows_live):
        return follower(ChangeLines(output, run_ids)).follow()
    # Loading the display costs more than a short watch.
    from pi_workflows.cli.live import LiveDisplay  # noqa: PLC0415

    with LiveDisplay(output, has_advice=True) as display:
        shown = follower(display)
        code = shown.follow()
    for run in shown.runs:
        if run.outcome is not None:
            output.line(end_line(run, run.outcome))
    return code


def view_run(invocation: Invocation, typed: str, *, is_once: bool, deadline: float | None) -> int:
    """Show a run's graph until the run ends.

    Args:
        invocation: The invocation.
        typed: The run.
        is_once: Show it as it stands, and end.
        deadline: Seconds; None without end.

    Returns:
        The exit code: of the run's end; 0 with `is_once`.

    Raises:
        As `watch_runs`.
    """
    output = invocation.output
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        if is_once:
            _show_once(output, server, run_id)
            return 0
        invocation.followed = (run_id,)

        def follower(listener: Listener) -> Follower:
            return Follower(
                server, (run_id,), listener, deadline_ms=_milliseconds(deadline), until_end=True
            )

        if output.is_json:
            return follower(_Views(output)).follow()
        if not output.shows_live:
            return follower(_Pictures(output)).follow()
        # As for `watch`.
        from pi_workflows.cli.live import LiveDisplay  # noqa: PLC0415

        with LiveDisplay(output, has_advice=True) as display:
            return follower(display).follow()


def _show_once(output: Output, server: Client, run_id: str) -> None:
    """Show a run as it stands."""
    document = ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt
    if output.is_json:
        output.document(document if isinstance(document, dict) else {})
        return
    scene = Scene(now_ms=SystemClock().now_ms(), columns=output.columns, has_advice=True)
    output.styled(picture(RunView.parse(document), scene))


class _Views(Silence):
    """Writes a run view for each change, and a last line."""

    def __init__(self, output: Output) -> None:
        self._output = output

    @property
    def detail(self) -> Detail:
        """A program gets views without older parts."""
        return "whole"

    def seen(self, run: Followed) -> None:
        """Write the view as the server sent it."""
        document = run.view.document if run.view is not None else None
        if isinstance(document, dict):
            self._output.document(document)

    def ended(self, run: Followed, outcome: Outcome, *, is_last: bool) -> None:
        """Write the end."""
        self._output.document(end_document(run, outcome, is_last=is_last))


class _Pictures(Silence):
    """Writes the picture of a run after each change, one below the other."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._last: list[str] = []

    @property
    def detail(self) -> Detail:
        """A node that failed says why."""
        return "picture"

    def seen(self, run: Followed) -> None:
        """Write a picture that differs from the last one."""
        if run.view is None:
            return
        scene = Scene(now_ms=run.view.state.finished_at or SystemClock().now_ms(), has_advice=True)
        lines = [plain(line) for line in picture(run.view, scene)]
        if lines[1:] != self._last:
            self._last = lines[1:]
            self._output.lines([*lines, ""])


def list_events(
    invocation: Invocation, typed: str, *, file: Path | None, from_seq: int, follow: bool
) -> int:
    """List what happened to a run.

    Args:
        invocation: The invocation.
        typed: The run.
        file: A database that no server has open; None asks the server.
        from_seq: Events up to this number are left out.
        follow: Go on until the run ends.

    Returns:
        The exit code: of the run's end with `follow`, else 0.

    Raises:
        WrongUsage: `follow` with a file, in which nothing happens.
        As `watch_runs`, and as `source` with a file.
    """
    output = invocation.output
    if not follow:
        with source(invocation, file) as asked:
            _list_trace(output, asked.reader, asked.run_id_of(typed), from_seq)
        return 0
    if file is not None:
        raise WrongUsage("--follow: nothing happens in a file any more.", field="--follow")
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        invocation.followed = (run_id,)
        listener: Listener = ChangeLines(output, (run_id,))
        if output.is_json:
            listener = ChangeDocuments(output, has_display=False)
        return Follower(server, (run_id,), listener, from_seq=from_seq, until_end=True).follow()


def _list_trace(output: Output, server: Reader, run_id: str, from_seq: int) -> None:
    """Write what happened to a run so far."""
    seq = from_seq
    view = None
    if not output.is_json:
        view = RunView.parse(ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt)
    while True:
        items, total = trace_page(server, run_id, seq)
        errors = {} if view is None else errors_of(server, run_id, items)
        for item in items:
            if view is None:
                output.document(change_document(run_id, item))
            else:
                words = described(item, view, errors)
                output.lines(
                    change_lines(run_id, item, Columns.of(view), words, window=output.columns)
                )
            seq = item.seq
        if seq >= total:
            return


def _milliseconds(seconds: float | None) -> int | None:
    """Return seconds as whole milliseconds."""
    return None if seconds is None else int(seconds * _MS_PER_SECOND)
