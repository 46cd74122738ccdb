"""Looking into a database that no server has open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.invocation import Invocation

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A database that no server has open: a backup.")
]


def declare(app: typer.Typer) -> None:
    """Declare the commands that look into a file that is not live."""
    command(app, "rebuild", examples=("audit rebuild backup.sqlite",))(rebuild)


def rebuild(invocation: Invocation, *, file: FileArgument) -> int:
    """Replay the log of a database and compare every row with the one that is stored."""
    from pi_workflows.cli.auditing import rebuild_state

    return rebuild_state(invocation, file)
