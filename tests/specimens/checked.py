"""Verifying a file that a test has made."""

from __future__ import annotations

from pathlib import Path

from pi_workflows.kernel.verify import Verification, verify
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from projections import route


def check(file: Path, *, quick: bool = False) -> Verification:
    """Verify a file.

    Args:
        file: The database.
        quick: Leave out digests and the replay.

    Returns:
        What was found.
    """
    with open_inactive(file, live_directory=None) as source:
        return verify(source, quick=quick, scratch=lambda: create_scratch(None), projectors=route)
