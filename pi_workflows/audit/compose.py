"""What offline checks are made of: the server's projectors and a database for the replay."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pi_workflows.base import ids
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.store.scratch import Scratch, create_scratch
from projections import route

PROJECTORS: Final[Projectors] = route
"""The projectors that the server uses."""


@contextmanager
def scratch_beside(file: Path) -> Generator[Scratch]:
    """Make a database for a replay, beside the file that is judged, and remove it afterwards.

    Args:
        file: The judged file. When nothing can be written beside it, as on a read-only disk, the
            directory for temporary files is taken.

    Returns:
        The empty database, for as long as the body runs.

    Raises:
        Unavailable: The disk is full or failed.
    """
    directory = file.resolve().parent
    if not os.access(directory, os.W_OK | os.X_OK):
        directory = Path(tempfile.gettempdir())
    with create_scratch(directory / f".{ids.random_id('replay')}.sqlite") as scratch:
        yield scratch
