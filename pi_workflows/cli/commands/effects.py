"""Looking at effects and saying what became of them."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import typer

from pi_workflows.base.limits import EVIDENCE_CHARS_MAX
from pi_workflows.cli.command import command, group
from pi_workflows.cli.invocation import Invocation

Status = Literal["pending", "applying", "applied", "rejected", "ambiguous", "cancelled"]


def declare(app: typer.Typer) -> None:
    """Declare the commands of this module."""
    group(app, examples=("effects", "effects --run deploy-7 --status applied"))(effects)
    command(app, "show", examples=("effects show effect-3f2a",))(show)
    command(
        app,
        "resolve",
        examples=(
            "effects resolve effect-3f2a confirm --evidence 'the invoice 4711 is in the books'",
        ),
    )(resolve)


def effects(
    invocation: Invocation,
    *,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only the effects of this run.")
    ] = None,
    status: Annotated[
        Status | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help=f"Only effects that stand so: {', '.join(get_args(Status))}; the unsettled by"
            " default.",
        ),
    ] = None,
) -> int:
    """List what runs do to the world, and settle what nobody knows.

    An effect is ambiguous when it was cut off while it applied and must not simply be repeated: its
    run stands still until somebody looks and says what became of it.
    """
    from pi_workflows.cli.effects import list_effects

    return list_effects(invocation, run, status)


def show(
    invocation: Invocation,
    *,
    effect: Annotated[
        str, typer.Argument(metavar="ID", help="An effect's ID, or the beginning of one.")
    ],
) -> int:
    """Show what is known of one effect, and what each answer about it would do.

    What it asked for, its tries with their times and ends, what it had given so far, and what was
    decided about it before.
    """
    from pi_workflows.cli.effects import show_effect

    return show_effect(invocation, effect)


def resolve(
    invocation: Invocation,
    *,
    effect: Annotated[
        str, typer.Argument(metavar="ID", help="An effect's ID, or the beginning of one.")
    ],
    action: Annotated[
        Literal["confirm", "retry", "reject"],
        typer.Argument(
            metavar="confirm|retry|reject",
            help="It happened; try it again; it did not happen and shall not.",
        ),
    ],
    evidence: Annotated[
        str,
        typer.Option(
            "--evidence",
            metavar="TEXT",
            help=f"How you know, at most {EVIDENCE_CHARS_MAX:,} characters; stored with the run."
            " With confirm a JSON object is the action's result, in place of the one that was"
            " lost.",
        ),
    ],
) -> int:
    """Say what became of an ambiguous effect; its run goes on."""
    from pi_workflows.cli.effects import resolve_effect

    return resolve_effect(invocation, effect, action, evidence)
