"""Looking at runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

import typer

from pi_workflows.base.errors import WrongUsage
from pi_workflows.base.limits import (
    PAGE_ITEMS_MAX,
    REVISION_MAX,
    RUNS_SEARCHED_DEFAULT,
    RUNS_SHOWN_DEFAULT,
    SEARCH_QUERY_CHARS_MAX,
)
from pi_workflows.base.vocabulary import DisplayStatus, PageKind
from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import DeadlineOption, FileOption, RunArgument, path_of
from pi_workflows.cli.help import RUNS
from pi_workflows.cli.invocation import Invocation


class Kind(StrEnum):
    """What is looked through; typer takes several values of nothing else."""

    NODES = "nodes"
    ERRORS = "errors"
    OUTPUTS = "outputs"
    ENTRIES = "entries"


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    examples = ("runs", "runs --status waiting", "runs --project . --json")
    command(app, "runs", panel=RUNS, examples=examples)(runs)
    command(
        app,
        "show",
        panel=RUNS,
        examples=(
            "show repo-health-k3",
            "show repo-health-k3 --json",
            "show repo-health-k3 --page steps --cursor 40",
            "show repo-health-k3 --file backup.sqlite",
        ),
    )(show)
    command(
        app,
        "explain",
        panel=RUNS,
        examples=("explain repo-health-k3", "explain repo-health-k3 --file backup.sqlite"),
    )(explain)
    command(
        app,
        "search",
        panel=RUNS,
        examples=(
            "search 'no space left'",
            "search timeout --run repo-health-k3 --kind errors",
            "search deploy --kind nodes --kind outputs --file backup.sqlite",
        ),
    )(search)


def runs(
    invocation: Invocation,
    *,
    status: Annotated[
        DisplayStatus | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help=f"Only runs that stand so: {', '.join(get_args(DisplayStatus))}.",
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project",
            metavar="DIR",
            parser=path_of("DIR"),
            help="Only runs of this project; all by default.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", metavar="COUNT", min=1, max=PAGE_ITEMS_MAX, help="How many to show."
        ),
    ] = RUNS_SHOWN_DEFAULT,
    cursor: Annotated[
        int,
        typer.Option("--cursor", metavar="INDEX", min=0, help="Leave out this many at the front."),
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show the list again whenever it changes.")
    ] = False,
    deadline: DeadlineOption = None,
) -> int:
    """List runs, newest first."""
    from pi_workflows.cli.listing import Listing, list_runs

    return list_runs(
        invocation,
        Listing(
            status=status,
            project=project,
            limit=limit,
            cursor=cursor,
            follow=follow,
            deadline=deadline,
        ),
    )


def show(
    invocation: Invocation,
    *,
    run: RunArgument,
    page: Annotated[
        PageKind | None,
        typer.Option(
            "--page",
            metavar="KIND",
            help="A window of it instead: steps; trace, its events; trace_at_step, the events"
            " around a step; updates, its progress; settings; follow_ups; workflow_messages, what"
            " its session was told; session_entries and session_events, what was captured of its"
            " sessions; or aggregate, all that it gave.",
        ),
    ] = None,
    cursor: Annotated[
        int | None,
        typer.Option(
            "--cursor",
            metavar="INDEX",
            min=0,
            max=REVISION_MAX,
            help="Where the window is, a step for trace_at_step; the end by default.",
        ),
    ] = None,
    file: FileOption = None,
) -> int:
    """Show a run: where it stands, its steps, what it asks, what it gave."""
    if page == "aggregate" and cursor is not None:
        raise WrongUsage("--cursor: all that a run gave is one document.", field="--cursor")
    if page is not None:
        from pi_workflows.cli.run_pages import show_page

        return show_page(invocation, run, page, cursor, file)
    if cursor is not None:
        raise WrongUsage(
            "--cursor: it is a place in a page; name one with --page.", field="--cursor"
        )
    from pi_workflows.cli.showing import show_run

    return show_run(invocation, run, file)


def explain(invocation: Invocation, *, run: RunArgument, file: FileOption = None) -> int:
    """Say why a run is where it is, and which command helps.

    With --file: tell first what happened to it, who asked for it, what waited and for how long.
    """
    from pi_workflows.cli.explaining import explain_run

    return explain_run(invocation, run, file)


def search(
    invocation: Invocation,
    *,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help=f"What to look for, at most {SEARCH_QUERY_CHARS_MAX} characters; its case does"
            " not matter.",
        ),
    ],
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Search this run only.")
    ] = None,
    kind: Annotated[
        list[Kind] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Look through nodes, errors, outputs or entries only; may be repeated.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            metavar="COUNT",
            min=1,
            max=PAGE_ITEMS_MAX,
            help="How many runs to search, the newest first.",
        ),
    ] = RUNS_SEARCHED_DEFAULT,
    file: FileOption = None,
) -> int:
    """Find a text in node names, errors, outputs and captured sessions.

    Writes one line for each match: run, step, node, what holds it, and the text around it. Says at
    the end whether everything was searched. The exit code is 0 with a match, 1 without one.
    """
    from pi_workflows.cli.searching import Search, search_runs

    return search_runs(invocation, Search(text, tuple(kind or ()), run, limit, file))
