"""Whether the files of a workflow are still the ones that a run was started with."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import Final

import trio

from pi_workflows.base.errors import TransitionDenied
from pi_workflows.base.limits import SOURCE_BYTES_MAX
from pi_workflows.definition.source import SourceFile

_PART_BYTES: Final = 1 << 16


async def changed(files: Iterable[SourceFile]) -> str | None:
    """Hash the files again, in a thread: a slow disk must not hold up the server.

    Args:
        files: What the launch options name.

    Returns:
        The path of the first file that is gone or different; None when all are as they were.
    """
    named = tuple(files)
    return await trio.to_thread.run_sync(_first_changed, named, abandon_on_cancel=True)


async def require_unchanged(files: Iterable[SourceFile]) -> None:
    """Refuse to go on with a workflow whose files changed.

    Raises:
        TransitionDenied: `workflowSourceChanged`.
    """
    path = await changed(files)
    if path is not None:
        raise TransitionDenied(
            f"The workflow's source {path} is not the one that the run was started with.",
            code="workflowSourceChanged",
            hint="Put the file back, or start a new run.",
        )


def _first_changed(files: tuple[SourceFile, ...]) -> str | None:
    """Return the first file that is not as it was."""
    for file in files:
        if _digest(file.path) != file.sha256:
            return file.path
    return None


def _digest(path: str) -> str | None:
    """Return the hex SHA-256 of a regular file; None when there is none that could be a source."""
    try:
        # A pipe or device in the file's place must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > SOURCE_BYTES_MAX:
            return None
        digest = hashlib.sha256()
        while part := os.read(descriptor, _PART_BYTES):
            digest.update(part)
        return digest.hexdigest()
    except OSError:
        return None
    finally:
        os.close(descriptor)
