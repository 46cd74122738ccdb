"""The open store that most tests of this package use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.bench import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_workflows.store.database import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store in a directory of its own; whatever the test leaves is abandoned, as by a crash."""
    opened = open_store(tmp_path / "state")
    yield opened
    opened.crash()
