"""What the server's tests share: a state directory with a short path, as a socket's has to be."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.servers import Running


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A path in a directory of our own, at which nothing is yet."""
    memory = Path("/dev/shm")  # noqa: S108 - the directory in it is private and random
    made = Path(tempfile.mkdtemp(prefix="pw-", dir=memory if memory.is_dir() else None))
    yield made / "state"
    shutil.rmtree(made)


@pytest.fixture
def running(state_dir: Path) -> Iterator[Running]:
    """Server processes that end with the test."""
    found = Running(state_dir)
    yield found
    found.end()
