"""Looking at workflows, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import ProjectOption
from pi_workflows.cli.help import WORKFLOWS
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(app, "workflows", panel=WORKFLOWS, examples=("workflows",))(workflows)
    examples = ("check docs/examples/repo_health_workflow.py",)
    command(app, "check", panel=WORKFLOWS, examples=examples)(check)


def workflows(invocation: Invocation, *, project: ProjectOption = None) -> int:
    """List the workflows that can be run by name."""
    from pi_workflows.cli.checking import list_workflows

    return list_workflows(invocation, project or Path())


def check(
    invocation: Invocation,
    *,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A workflow's file, or the name of one.")
    ],
    project: ProjectOption = None,
) -> int:
    """Check a workflow's file: print its graph, or every mistake in it.

    The file is loaded in a process of its own, as a run would load it; nothing of it is executed as
    a run.
    """
    from pi_workflows.cli.checking import check_workflow

    return check_workflow(invocation, file, project or Path())
