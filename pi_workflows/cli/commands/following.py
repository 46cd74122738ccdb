"""Following runs."""

from __future__ import annotations

from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import (
    DeadlineOption,
    FileOption,
    FromOption,
    RunArgument,
)
from pi_workflows.cli.help import RUNS
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(
        app,
        "watch",
        panel=RUNS,
        examples=(
            "watch repo-health-k3",
            "watch nightly-1 nightly-2 --fail-fast --deadline 600",
            "watch nightly-3 --wait-for --json",
        ),
    )(watch)
    command(
        app, "view", panel=RUNS, examples=("view repo-health-k3", "view repo-health-k3 --once")
    )(view)
    command(
        app,
        "events",
        panel=RUNS,
        examples=(
            "events repo-health-k3",
            "events repo-health-k3 --follow --from 12",
            "events repo-health-k3 --file backup.sqlite",
        ),
    )(events)


def watch(
    invocation: Invocation,
    *,
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Run IDs, or the beginnings of some."),
    ],
    wait_for: Annotated[
        bool,
        typer.Option("--wait-for", help="Wait for runs that do not exist yet; takes whole IDs."),
    ] = False,
    until_end: Annotated[
        bool,
        typer.Option("--until-end", help="Go on while a run waits, is paused, or stands still."),
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End at the first failed node or run.")
    ] = False,
    start: FromOption = 0,
    deadline: DeadlineOption = None,
) -> int:
    """Follow runs until each has ended or stands still.

    Writes one line for each event and one last line for each run, whatever happens to the server
    meanwhile. The exit code is the highest of the runs: 0 completed, 1 failed, 6 cancelled, 7 timed
    out, 10 waiting for an answer, 11 paused, 12 in need of a person.
    """
    from pi_workflows.cli.watching import Watch, watch_runs

    return watch_runs(
        invocation,
        Watch(
            runs=tuple(runs),
            from_seq=start,
            deadline=deadline,
            waits_for_runs=wait_for,
            until_end=until_end,
            fail_fast=fail_fast,
        ),
    )


def view(
    invocation: Invocation,
    *,
    run: RunArgument,
    once: Annotated[bool, typer.Option("--once", help="Show one picture and end.")] = False,
    deadline: DeadlineOption = None,
) -> int:
    """Show a run's graph, live, until the run ends.

    The exit code is the run's as with watch. Ctrl-C leaves the run alone. With --once it is 0
    however the run stands, unless there is nothing to show.
    """
    from pi_workflows.cli.watching import view_run

    return view_run(invocation, run, is_once=once, deadline=deadline)


def events(
    invocation: Invocation,
    *,
    run: RunArgument,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with new events until the run ends.")
    ] = False,
    start: FromOption = 0,
    file: FileOption = None,
) -> int:
    """List everything that happened to a run."""
    from pi_workflows.cli.watching import list_events

    return list_events(invocation, run, file=file, from_seq=start, follow=follow)
