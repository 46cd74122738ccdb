"""The operator's passphrase."""

from __future__ import annotations

from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(app, "init", examples=("operator init", "operator init --change"))(init)


def init(
    invocation: Invocation,
    *,
    change: Annotated[
        bool,
        typer.Option("--change", help="Replace the passphrase; the old one is asked for first."),
    ] = False,
) -> int:
    """Set the passphrase that proves that a person decides; asked at the terminal, twice."""
    from pi_workflows.cli.operator import init_operator

    return init_operator(invocation, changes=change)
