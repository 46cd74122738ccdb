"""Where the scripted server listens, and the clock of the client that waits."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.client.stage import StillClock


@pytest.fixture
def path() -> Generator[Path]:
    """Return where the server listens: a short path, as a socket needs."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "host.sock"


@pytest.fixture
def clock() -> StillClock:
    """Return the clock of the client."""
    return StillClock()
