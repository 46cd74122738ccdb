"""The sound database that every specimen is made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.store.backup import backup
from tests.audit.population import population
from tests.kernel.harness import Harness, begin, end, finish


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of an installation after a run."""
    directory = tmp_path_factory.mktemp("base")
    bench = Harness(directory / "state")
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), begin("two"), permit=permit)
    bench.do(end("two", 2), permit=permit)
    bench.do(finish(2), permit=permit)
    backup(bench.store, directory / "base.sqlite")
    bench.store.close()
    return directory / "base.sqlite"


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of runs of every kind."""
    return population(tmp_path_factory.mktemp("sound")).close()
