"""Looking into a database that no server has open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pi_workflows.base.limits import LOG_EVENTS_DEFAULT, LOG_EVENTS_MAX, REVISION_MAX
from pi_workflows.cli.command import command
from pi_workflows.cli.invocation import Invocation

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A database that no server has open: a backup.")
]

RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="Only of this run; an ID or the beginning of one."),
]


def declare(app: typer.Typer) -> None:
    """Declare the commands that look into a file that is not live."""
    command(app, "rebuild", examples=("audit rebuild backup.sqlite",))(rebuild)
    command(
        app,
        "log",
        examples=(
            "audit log backup.sqlite",
            "audit log backup.sqlite --run repo-health-k3 --type attempt.",
            "audit log backup.sqlite --from 120 --to 140 --json",
        ),
    )(log)


def rebuild(invocation: Invocation, *, file: FileArgument) -> int:
    """Replay the log of a database and compare every row with the one that is stored."""
    from pi_workflows.cli.auditing import rebuild_state

    return rebuild_state(invocation, file)


def log(
    invocation: Invocation,
    *,
    file: FileArgument,
    run: RunOption = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only events of this type, such as run.queued, or of a family, such as run."
            " Several are added.",
        ),
    ] = None,
    start: Annotated[
        int,
        typer.Option(
            "--from", metavar="EVENT", min=0, max=REVISION_MAX, help="Begin with this number."
        ),
    ] = 0,
    end: Annotated[
        int,
        typer.Option(
            "--to",
            metavar="EVENT",
            min=0,
            max=REVISION_MAX,
            help="End with this number.",
            show_default=False,
        ),
    ] = REVISION_MAX,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="COUNT",
            min=1,
            max=LOG_EVENTS_MAX,
            help=f"As many at most; all by default, with --json {LOG_EVENTS_DEFAULT:,}.",
        ),
    ] = None,
) -> int:
    """List what the log of a database says, one line an event.

    Each line has the number, the moment, the class of who caused it, the run, the type, the node
    and what happened; never a stored value, and never who exactly it was.
    """
    from pi_workflows.cli.event_log import Wanted, list_log

    return list_log(
        invocation,
        file,
        Wanted(run=run, types=tuple(types or ()), from_seq=start, to_seq=end, limit=limit),
    )
