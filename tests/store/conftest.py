"""The open store that most tests of this package use."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.store.bench import open_store
from tests.store.mounts import Mounts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_workflows.store.database import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in a directory of its own; whatever the test leaves is abandoned, as by a crash."""
    opened = open_store(tmp_path / "state")
    yield opened
    opened.crash()


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    """Mounts that end with the test; where there is no right to mount the test is skipped."""
    made = Mounts()
    yield made
    made.end()


@pytest.fixture
def open_tmp_path() -> Iterator[Path]:
    """A directory that every user can reach, as pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="pi-workflows-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
