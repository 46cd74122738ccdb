"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
