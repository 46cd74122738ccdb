"""The kernel over a real file, so that views read what real commands wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.harness import Harness
from tests.kernel.rebuilt import assert_rebuilds


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """Drive a new database, and compare it with a rebuild from its log afterwards."""
    harness = Harness(tmp_path / "state")
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()
