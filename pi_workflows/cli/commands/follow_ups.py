"""Prompts that follow a run."""

from __future__ import annotations

from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import RunArgument
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(app, "queue", examples=("follow-up queue release-7 'Now write the release notes.'",))(
        queue
    )
    command(app, "remove", examples=("follow-up remove release-7 follow-up-3f2a",))(remove)


def queue(
    invocation: Invocation,
    *,
    run: RunArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT|@FILE|-", help="What the session's model is told.")
    ],
) -> int:
    """Queue a prompt for the session of a run, for when the run has completed.

    The prompts of a run take their turns in the order in which they were queued, after the session
    was told the run's end. When the run does not complete, they are cancelled.
    """
    from pi_workflows.cli.follow_ups import queue_follow_up

    return queue_follow_up(invocation, run, text)


def remove(
    invocation: Invocation,
    *,
    run: RunArgument,
    follow_up: Annotated[str, typer.Argument(metavar="ID", help="What `queue` has printed.")],
) -> int:
    """Take a queued prompt back, before it was sent."""
    from pi_workflows.cli.follow_ups import remove_follow_up

    return remove_follow_up(invocation, run, follow_up)
