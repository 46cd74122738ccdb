"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.archive import Archive, copied, make_archive
from tests.cli.installation import Installation, installed


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """An installation whose server is started by the first command that needs it."""
    with installed() as made:
        yield made


@pytest.fixture
def fresh() -> Iterator[Installation]:
    """An installation of this test alone."""
    with installed() as made:
        yield made


@pytest.fixture(scope="session")
def archive() -> Iterator[Archive]:
    """Return what was left of an installation that stopped."""
    with installed() as made:
        yield make_archive(made)


@pytest.fixture
def file(archive: Archive, fresh: Installation) -> Path:
    """Return a backup in the project of an installation that has no server."""
    return copied(archive, fresh.project)
