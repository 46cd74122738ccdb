"""Every command in one tree, in the order in which help lists them."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from pi_workflows.cli.command import needs_command
from pi_workflows.cli.commands import (
    audit,
    checks,
    control,
    effects,
    follow_ups,
    following,
    operator,
    runs,
    servers,
    settings,
    starts,
    state,
)
from pi_workflows.cli.failure import PROGRAM
from pi_workflows.cli.help import RUNS, STATE, HelpedGroup, ShowingGroup

_HELP: Final = """Durable workflows: every run is an event log, and survives kill -9.

\b
  pi-workflows run FILE      start a workflow and follow it
  pi-workflows runs          see what runs, waits and has ended
  pi-workflows answer RUN    answer what a run asks

Commands that need the server start it. Exit codes: 0 done, 1 refused or failed, 2 wrong usage,
3 no server, 4 state refused, 5 outcome unknown; of a followed run 6 cancelled, 7 timed out,
8 deadline passed, 10 waiting, 11 paused, 12 in need of a person.
"""


def _group(kind: type[HelpedGroup] = HelpedGroup) -> typer.Typer:
    """Return a group of commands whose help is plain text."""
    return typer.Typer(
        cls=kind,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 88},
    )


def _print_version(is_asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    """Print the version and end."""
    if is_asked:
        from pi_workflows.base.version import package_version  # noqa: PLC0415 - for this alone

        typer.echo(f"{PROGRAM} {package_version()}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Print the version and end."
    ),
]


def _tree() -> typer.Typer:
    """Build the tree of commands."""
    root = _group()
    needs_command(root, _HELP, flags={"is_version": VersionOption})
    for module in (starts, following, runs, control, checks):
        module.declare(root)
    effect_commands, state_commands = _group(), _group()
    audit_commands, server_commands = _group(), _group()
    effects.declare(effect_commands)
    state.declare(state_commands)
    audit.declare(audit_commands)
    servers.declare(server_commands)
    settings_commands, follow_up_commands = _group(ShowingGroup), _group()
    settings.declare(settings_commands)
    follow_ups.declare(follow_up_commands)
    needs_command(settings_commands, "Show a run's settings, and change them.")
    needs_command(follow_up_commands, "Say what follows a run in its session.")
    operator_commands = _group()
    operator.declare(operator_commands)
    needs_command(operator_commands, "Look after the passphrase that proves a person.")
    needs_command(state_commands, "Look after the stored state.")
    needs_command(audit_commands, "Look into a database that no server has open.")
    needs_command(server_commands, "Start, stop and look at the server.")
    root.add_typer(effect_commands, name="effects", rich_help_panel=RUNS)
    root.add_typer(settings_commands, name="settings", rich_help_panel=RUNS)
    root.add_typer(follow_up_commands, name="follow-up", rich_help_panel=RUNS)
    root.add_typer(operator_commands, name="operator", rich_help_panel=STATE)
    root.add_typer(server_commands, name="server", rich_help_panel=STATE)
    root.add_typer(state_commands, name="state", rich_help_panel=STATE)
    root.add_typer(audit_commands, name="audit", rich_help_panel=STATE)
    return root


app: Final = _tree()
