"""Which workflow of which project is meant."""

from __future__ import annotations

import os
from pathlib import Path

from pi_workflows.base.errors import WrongUsage


def project_path(directory: Path) -> str:
    """Return a project's directory as it is stored: absolute, without symbolic links.

    Args:
        directory: As it was typed.

    Raises:
        WrongUsage: `projectMissing`: there is no such directory.
    """
    try:
        path = directory.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        path = None
    if path is None or not path.is_dir():
        raise WrongUsage(
            f"--project: there is no directory {directory}",
            code="projectMissing",
            field="--project",
        )
    return str(path)


def absolute_target(target: str) -> str:
    """Return a target so that it means the same in every directory.

    Args:
        target: A workflow's name, which stays as it is, or a path relative to this directory.

    Raises:
        WrongUsage: It is empty.
    """
    if not target:
        raise WrongUsage("TARGET: name a workflow or its file", field="TARGET")
    if "/" not in target and not target.endswith(".py"):
        return target
    return absolute_path(Path(target), field="TARGET")


def absolute_path(path: Path, *, field: str) -> str:
    """Return a path from the root on; links in it stay.

    Args:
        path: As it was typed.
        field: The argument, for errors.

    Raises:
        WrongUsage: It is relative to a directory that is gone.
    """
    try:
        return os.path.abspath(path.expanduser())  # noqa: PTH100 - `resolve` follows links
    except (FileNotFoundError, RuntimeError) as error:
        raise WrongUsage(
            f"{field}: {path} leads nowhere: {error}", code="pathInvalid", field=field
        ) from None
