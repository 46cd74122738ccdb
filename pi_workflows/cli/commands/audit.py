"""Looking into a database that no server has open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pi_workflows.base.limits import LOG_EVENTS_DEFAULT, LOG_EVENTS_MAX, REVISION_MAX
from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import path_of
from pi_workflows.cli.invocation import Invocation

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        parser=path_of("FILE"),
        help="A database that no server has open: a backup.",
    ),
]

RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="Only of this run; an ID or the beginning of one."),
]


def declare(app: typer.Typer) -> None:
    """Declare the commands that look into a file that is not live."""
    command(
        app,
        "rebuild",
        examples=("audit rebuild backup.sqlite", "audit rebuild backup.sqlite --to new.sqlite"),
    )(rebuild)
    command(
        app,
        "log",
        examples=(
            "audit log backup.sqlite",
            "audit log backup.sqlite --run repo-health-k3 --type attempt.",
            "audit log backup.sqlite --from 120 --to 140 --json",
        ),
    )(log)
    command(
        app,
        "at",
        examples=(
            "audit at backup.sqlite --event 120",
            "audit at backup.sqlite --event 120 --json",
        ),
    )(at)
    command(app, "diff", examples=("audit diff backup.sqlite --from 120 --to 140",))(diff)
    command(app, "explain", examples=("audit explain backup.sqlite --run repo-health-k3",))(explain)
    command(app, "diff-runs", examples=("audit diff-runs backup.sqlite nightly-1 nightly-2",))(
        diff_runs
    )
    command(
        app,
        "capsule",
        examples=("audit capsule backup.sqlite --run repo-health-k3 --to report.sqlite",),
    )(capsule)


def rebuild(
    invocation: Invocation,
    *,
    file: FileArgument,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="NEW",
            parser=path_of("NEW"),
            help="Keep what the log gives as a database of this name.",
        ),
    ] = None,
) -> int:
    """Replay the log of a database and compare every row with the one that is stored."""
    from pi_workflows.cli.auditing import rebuild_state

    return rebuild_state(invocation, file, to)


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
            help="Only events of this type, as run.queued, or family, as run; may be repeated.",
        ),
    ] = None,
    start: Annotated[
        int,
        typer.Option(
            "--from", metavar="EVENT", min=0, max=REVISION_MAX, help="Begin with this number."
        ),
    ] = 0,
    end: Annotated[
        int | None,
        typer.Option(
            "--to", metavar="EVENT", min=0, max=REVISION_MAX, help="End with this number."
        ),
    ] = None,
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
    and what happened; never a stored value, and never who exactly it was. `control` is a local
    command, `host` the server, `system` the recovery of a starting server, `policy` a timeout.
    """
    from pi_workflows.cli.event_log import Wanted, list_log

    return list_log(
        invocation,
        file,
        Wanted(run=run, types=tuple(types or ()), from_seq=start, to_seq=end, limit=limit),
    )


def at(
    invocation: Invocation,
    *,
    file: FileArgument,
    event: Annotated[
        int,
        typer.Option(
            "--event",
            metavar="EVENT",
            min=1,
            max=REVISION_MAX,
            help="The event's number in `audit log`.",
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="The run to show; by default the one of the event."
        ),
    ] = None,
) -> int:
    """Show a run exactly as it stood after an event.

    Several events may be one command; the moment is the end of the event's command.
    """
    from pi_workflows.cli.time_travel import show_moment

    return show_moment(invocation, file, event, run)


def diff(
    invocation: Invocation,
    *,
    file: FileArgument,
    start: Annotated[
        int,
        typer.Option(
            "--from",
            metavar="EVENT",
            min=0,
            max=REVISION_MAX,
            help="The earlier event, by its number in `audit log`; 0 is before the first.",
        ),
    ],
    end: Annotated[
        int,
        typer.Option("--to", metavar="EVENT", min=0, max=REVISION_MAX, help="The later event."),
    ],
    run: RunOption = None,
) -> int:
    """Show which rows of which tables changed between two events."""
    from pi_workflows.cli.row_changes import show_changes

    return show_changes(invocation, file, start, end, run)


def capsule(
    invocation: Invocation,
    *,
    file: FileArgument,
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="The run; an ID or the beginning of one.")
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="NEW",
            parser=path_of("NEW"),
            help="The capsule; nothing of that name exists yet.",
        ),
    ],
) -> int:
    """Write a run and its restarts as a database of their own, to be handed on.

    It has everything of these runs, their inputs and outputs too, and nothing else. Whatever looks
    into a backup looks into a capsule: `state verify`, `audit` and `--file`.
    """
    from pi_workflows.cli.auditing import write_run_capsule

    return write_run_capsule(invocation, file, run, to)


def explain(
    invocation: Invocation,
    *,
    file: FileArgument,
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="A run ID, or the beginning of one.")
    ],
) -> int:
    """Tell what happened to a run: who asked, what ran, waited and failed, who decided what.

    Who acted is named by class, never by identity, and of a value only its size and its digest.
    """
    from pi_workflows.cli.explaining import explain_run

    return explain_run(invocation, run, file)


def diff_runs(
    invocation: Invocation,
    *,
    file: FileArgument,
    left: Annotated[str, typer.Argument(metavar="RUN", help="A run ID, or the beginning of one.")],
    right: Annotated[str, typer.Argument(metavar="RUN", help="The run to compare it with.")],
) -> int:
    """Find the first step where two runs part, and put the two side by side.

    Times, and the surroundings in which a run was launched, are shown but do not count as a
    difference.
    """
    from pi_workflows.cli.run_difference import diff_runs as compare

    return compare(invocation, file, left, right)
