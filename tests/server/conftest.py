"""What the server's tests share: a short state directory, because a socket's path is short."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A path in a directory of our own, at which nothing is yet."""
    made = Path(tempfile.mkdtemp(prefix="pw-"))
    yield made / "state"
    shutil.rmtree(made)
