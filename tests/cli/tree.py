"""Every command there is, by walking the tree that typer built."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.core import TyperGroup

from pi_workflows.cli.app import app


def paths() -> list[tuple[str, ...]]:
    """Return the words of every command and group, the program itself first."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    return [(), *_below(root)]


def _below(group: TyperGroup) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (name,)
        if isinstance(command, TyperGroup):
            yield from ((name, *path) for path in _below(command))
