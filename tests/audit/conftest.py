"""What the tests of offline checks share."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.store.backup import backup
from tests.audit.population import population
from tests.kernel.harness import Harness, begin, end, finish


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the file of an installation that stopped in order after a run."""
    bench = Harness(tmp_path / "state")
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), begin("two"), permit=permit)
    bench.do(end("two", 2), permit=permit)
    bench.do(finish(2), permit=permit)
    bench.store.close()
    return tmp_path / "state" / "state.sqlite"


@pytest.fixture(scope="session")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a backup of runs of every kind, which nobody may change."""
    directory = tmp_path_factory.mktemp("every_kind")
    made = population(directory)
    file = directory / "backup.sqlite"
    backup(made.store, file)
    made.close()
    file.chmod(0o400)
    return file
