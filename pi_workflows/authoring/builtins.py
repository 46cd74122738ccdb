"""The workflows that the package ships: files like everybody's, in a directory of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FILE_SUFFIX: Final = "_workflow.py"
BUILTINS: Final = Path(os.path.realpath(__file__)).parents[1] / "builtins"
"""Where they are."""

PREFIX: Final = "builtin:"
"""Begins a reference that means one of them, whatever the project calls its own."""

HIDDEN: Final[frozenset[str]] = frozenset()
"""Names of those that others include and nobody starts by itself: they are not listed."""


def workflow_name(path: Path) -> str:
    """Return the name that a workflow file answers to: its stem, `_` written `-`."""
    return path.name.removesuffix(FILE_SUFFIX).replace("_", "-")


def builtin_name(path: Path) -> str | None:
    """Return the name of a built-in's file, None for any other file."""
    if path.parent != BUILTINS or not path.name.endswith(FILE_SUFFIX):
        return None
    return workflow_name(path)
