"""Steering runs."""

from __future__ import annotations

from typing import Annotated

import typer

from pi_workflows.cli.command import command
from pi_workflows.cli.commands.arguments import RunArgument
from pi_workflows.cli.help import RUNS
from pi_workflows.cli.invocation import Invocation


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    command(
        app,
        "answer",
        panel=RUNS,
        examples=(
            'answer repo-health-k3 \'{"decision": "accept"}\'',
            "answer repo-health-k3 @answer.json",
            "answer release-7 --text 'ship it'",
            "answer release-7 replan --input 'smaller steps'",
        ),
    )(answer)
    command(app, "pause", panel=RUNS, examples=("pause repo-health-k3",))(pause)
    command(app, "resume", panel=RUNS, examples=("resume repo-health-k3",))(resume)
    command(app, "cancel", panel=RUNS, examples=("cancel repo-health-k3",))(cancel)
    command(app, "restart", panel=RUNS, examples=("restart repo-health-k3",))(restart)


def answer(
    invocation: Invocation,
    *,
    run: RunArgument,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="VALUE|@FILE|-|CHOICE",
            help="The answer: JSON if it can be read as such, else text. On a terminal it may be"
            " left out: you are asked.",
        ),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Take VALUE as text, never as JSON.")
    ] = False,
    text_input: Annotated[
        str | None,
        typer.Option("--input", metavar="TEXT", help="What belongs to the choice of a decision."),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option("--request", metavar="ID", help="Answer this request and no other one."),
    ] = None,
) -> int:
    """Answer the question that a run asks; the same run goes on.

    A decision that only a person makes is answered with one of its choices. It is shown at the
    terminal first, and the operator's passphrase is asked for there.
    """
    from pi_workflows.cli.answering import Typed, answer_run

    typed = Typed(value, is_text=text, text=text_input)
    return answer_run(invocation, run, typed, request_id=request)


def pause(invocation: Invocation, *, run: RunArgument) -> int:
    """Stop working on a run until it is resumed."""
    from pi_workflows.cli.controlling import pause_run

    return pause_run(invocation, run)


def resume(invocation: Invocation, *, run: RunArgument) -> int:
    """Let a run go on that was paused or that stands still."""
    from pi_workflows.cli.controlling import resume_run

    return resume_run(invocation, run)


def cancel(invocation: Invocation, *, run: RunArgument) -> int:
    """End a run for good, with every process that works for it."""
    from pi_workflows.cli.controlling import cancel_run

    return cancel_run(invocation, run)


def restart(invocation: Invocation, *, run: RunArgument) -> int:
    """Start a run over that has ended: a new run with the same input and definition."""
    from pi_workflows.cli.controlling import restart_run

    return restart_run(invocation, run)
