"""Starting a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import DeadlineOption, ProjectOption
from pi_workflows.cli.help import RUNS
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(
        app,
        "run",
        panel=RUNS,
        examples=(
            'run docs/examples/repo_health_workflow.py --input \'{"repo": "."}\'',
            "run repo-health --input @settings.json --detach",
        ),
    )(run)


def run(
    invocation: Invocation,
    *,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A workflow's name or the path of its file.")
    ],
    value: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="JSON|@FILE|-",
            help="The workflow's input: JSON, a file that holds it, or - for standard input.",
        ),
    ] = "{}",
    run_id: Annotated[
        str | None,
        typer.Option("--run-id", metavar="ID", help="The run's ID; a random one by default."),
    ] = None,
    project: ProjectOption = None,
    deadline: DeadlineOption = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Print the run's ID and do not follow the run.")
    ] = False,
) -> int:
    """Start a workflow and follow its run.

    The run belongs to the server: it goes on when this command ends, and survives a crash of
    either. On a terminal a run that asks for an answer is given it here; elsewhere the command ends
    with exit code 10, and `answer` goes on with the same run.
    """
    from pi_workflows.cli.starting import Start, start

    return start(
        invocation,
        Start(
            target=target,
            value=value,
            run_id=run_id,
            project=project or Path(),
            deadline=deadline,
            is_detached=detach,
        ),
    )
