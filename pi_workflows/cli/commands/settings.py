"""Looking at a run's settings, and changing them."""

from __future__ import annotations

from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import RunArgument
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(app, "show", examples=("settings show release-7", "settings show release-7 --json"))(
        show
    )
    command(
        app,
        "change",
        examples=(
            "settings change release-7 --patch @patch.json",
            """settings change build-7 --patch '[{"op":"remove","path":"/hold"}]' --expect 3""",
        ),
    )(change)


def show(invocation: Invocation, *, run: RunArgument) -> int:
    """Show a run's settings: their values, who may change what, and who did.

    `show` may be left out: `settings RUN`.
    """
    from pi_workflows.cli.settings import show_settings

    return show_settings(invocation, run)


def change(
    invocation: Invocation,
    *,
    run: RunArgument,
    patch: Annotated[
        str,
        typer.Option(
            "--patch",
            metavar="JSON|@FILE|-",
            help="A JSON Patch (RFC 6902): a list of operations.",
        ),
    ],
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Which settings, where the run has several; by default those of the workflow"
            " itself.",
        ),
    ] = None,
    expect: Annotated[
        int | None,
        typer.Option(
            "--expect", metavar="NUMBER", min=0, help="Only if they are still at this change."
        ),
    ] = None,
) -> int:
    """Change a run's settings while it goes on.

    The workflow says what this command may do to them, and has the last word on each change. Nodes
    that begin from now on have the new value; one under way keeps its own.
    """
    from pi_workflows.cli.settings import change_settings

    return change_settings(invocation, run, patch, scope, expect)
