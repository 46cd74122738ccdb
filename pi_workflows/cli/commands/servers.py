"""The server itself."""

from __future__ import annotations

from typing import Annotated

import typer

from pi_workflows.base.limits import PATIENCE_SECONDS_MAX, STOP_GRACE_MS
from pi_workflows.cli.command import command
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(app, "start", examples=("server start",))(start)
    command(app, "status", examples=("server status", "server status --calibrate"))(status)
    command(app, "stop", examples=("server stop", "server stop --grace 120", "server stop --now"))(
        stop
    )
    command(app, "run", examples=("server run",))(run)


def start(invocation: Invocation) -> int:
    """Start the server in the background and wait until it is ready."""
    from pi_workflows.cli.server_process import start_server

    return start_server(invocation)


def status(
    invocation: Invocation,
    *,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Measure the disk first: raw commits in a scratch file."),
    ] = False,
) -> int:
    """Show how the server is, and what the disk allows."""
    from pi_workflows.cli.server_process import show_server

    return show_server(invocation, calibrates=calibrate)


def stop(
    invocation: Invocation,
    *,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace",
            metavar="SECONDS",
            min=0,
            max=PATIENCE_SECONDS_MAX,
            help=f"Wait so long for effects that apply now; {STOP_GRACE_MS // 1000} by default.",
        ),
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Wait for nothing.")] = False,
) -> int:
    """Stop the server in order; runs go on when the next one starts."""
    from pi_workflows.cli.server_process import stop_server

    return stop_server(invocation, grace=grace, is_now=now)


def run(invocation: Invocation) -> int:
    """Be the server, in the foreground, until Ctrl-C; it never leaves by itself."""
    from pi_workflows.cli.server_process import run_server

    return run_server(invocation)
