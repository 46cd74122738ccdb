"""Installations that leave nothing behind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.installation import Installation


@pytest.fixture
def installation() -> Iterator[Installation]:
    """Give a new installation; whatever it started is killed afterwards."""
    # A socket's path is short: pytest's own directories are too deep.
    with tempfile.TemporaryDirectory(prefix="piw-") as directory:
        made = Installation(Path(directory).resolve())
        made.project.mkdir()
        try:
            yield made
        finally:
            made.kill_runners()
            for server in made.started:
                server.kill()
                server.wait()
