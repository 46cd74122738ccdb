"""The stored state: its size, its soundness, copies of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import path_of
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands about the state."""
    command(app, "status", examples=("state status",))(status)
    examples = ("state verify", "state verify backup.sqlite --quick")
    command(app, "verify", examples=examples)(verify)
    command(app, "backup", examples=("state backup backup.sqlite",))(backup)


def status(invocation: Invocation) -> int:
    """Show how much is stored."""
    from pi_workflows.cli.stored_state import show_status

    return show_status(invocation)


def verify(
    invocation: Invocation,
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            parser=path_of("FILE"),
            help="A database that no server has open; by default the server checks the live one.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Of FILE: leave out digests and the replay of the log.")
    ] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="With --json: one line for each check of FILE.")
    ] = False,
) -> int:
    """Check everything that must hold in the stored state; nothing is repaired."""
    from pi_workflows.cli.stored_state import verify_state

    return verify_state(invocation, file, is_quick=quick, tells_progress=progress)


def backup(
    invocation: Invocation,
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            parser=path_of("FILE"),
            help="The copy; nothing of that name exists yet.",
        ),
    ],
) -> int:
    """Copy the live state into one complete file while the server goes on."""
    from pi_workflows.cli.stored_state import backup_state

    return backup_state(invocation, file)
