"""Help as plain text: usage, what it does, arguments, options, the global ones, examples.

Contexts, formatters and parameters have types that belong to typer alone: here they are `Any`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

PANELS: Final = ("Runs", "Workflows", "State and server")
RUNS, WORKFLOWS, STATE = PANELS

GLOBAL_NAMES: Final = frozenset({"is_json", "key", "no_color", "is_version", "help"})
_OTHER: Final = "Commands"


class HelpedCommand(TyperCommand):
    """A command whose help names its arguments as they are typed."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the command's name."""
        return ["[OPTIONS]", *(_metavar(each) for each in _arguments(self.get_params(ctx)))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        _write_parameters(self.get_params(ctx), ctx, formatter)


class HelpedGroup(TyperGroup):
    """Commands by what they are about."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the group's own options."""
        self.format_commands(ctx, formatter)
        _write_parameters(self.get_params(ctx), ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        names = self.list_commands(ctx)
        width = max(map(len, names))
        for panel in (*PANELS, _OTHER):
            rows = [
                (name.ljust(width), (each.help or "").split("\n", 1)[0])
                for name in names
                if (each := self.commands[name])
                and (getattr(each, "rich_help_panel", None) or _OTHER) == panel
            ]
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)


class ShowingGroup(HelpedGroup):
    """Commands about one thing, which is shown when it is named without a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a first one that is no command names the thing."""
        first = next((each for each in args if not each.startswith("-")), None)
        if first is not None and first not in self.commands:
            args.insert(args.index(first), "show")
        return super().parse_args(ctx, args)


def _write_parameters(parameters: Sequence[Any], ctx: Any, formatter: Any) -> None:
    """Write arguments, own options and global options, each under its heading."""
    options = [each for each in parameters if each.param_type_name == "option"]
    sections = (
        ("Arguments", [(_metavar(each), each.help or "") for each in _arguments(parameters)]),
        ("Options", [_row(each, ctx) for each in options if each.name not in GLOBAL_NAMES]),
        ("Global options", [_row(each, ctx) for each in options if each.name in GLOBAL_NAMES]),
    )
    for heading, rows in sections:
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


def _arguments(parameters: Sequence[Any]) -> list[Any]:
    """Return those parameters that are told by their place."""
    return [each for each in parameters if each.param_type_name == "argument"]


def _metavar(argument: Any) -> str:
    """Return an argument as usage names it."""
    return str(argument.metavar or argument.name.upper())


def _row(option: Any, ctx: Any) -> tuple[str, str]:
    """Return an option and what it does, with the default where there is one to tell."""
    names = ", ".join(sorted(option.opts, key=len))
    name = f"{names} {option.metavar}" if option.metavar else names
    default = option.get_default(ctx, call=False)
    is_told = default not in (None, False, 0, "") and option.name not in GLOBAL_NAMES
    text = str(option.help or "")
    if option.required:
        return name, f"{text} [required]"
    return name, f"{text} [default: {default}]" if is_told else text
