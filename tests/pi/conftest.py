"""Real Pi processes for tests: skipped, with the reason, where Pi is not installed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.pi.home import PiHome, PiMissing, PiPlace, find_pi
from tests.pi.model import Model
from tests.pi.pi import Pi
from tests.pi.terminal import Terminal


@pytest.fixture(scope="session")
def pi_place() -> PiPlace:
    """Give the installation of Pi."""
    try:
        return find_pi()
    except PiMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def model() -> Iterator[Model]:
    """Give a model without a plan, and hold it to have been asked nothing that was not planned."""
    made = Model()
    made.open()
    yield made
    made.close()
    assert made.problems == []
    assert {exchange.client for exchange in made.exchanges} <= {"127.0.0.1"}


@pytest.fixture
def pi_home(pi_place: PiPlace, model: Model) -> Iterator[PiHome]:
    """Give a home directory with the probe in it."""
    # A socket's path is short: pytest's own directories are too deep.
    with tempfile.TemporaryDirectory(prefix="pi-") as directory:
        root = Path(directory).resolve()
        home = PiHome(root, pi_place, model.port)
        home.make()
        try:
            yield home
        finally:
            home.kill_processes()


@pytest.fixture
def start_pi(pi_home: PiHome) -> Iterator[Callable[..., Pi]]:
    """Give what starts a Pi in RPC mode; whatever was started is killed afterwards."""
    with ExitStack() as started:

        def start(*arguments: str, session: Path | None = None) -> Pi:
            pi = Pi(pi_home, *arguments, session=session)
            started.callback(pi.kill)
            return pi

        yield start


@pytest.fixture
def terminal(pi_home: PiHome) -> Iterator[Terminal]:
    """Give a terminal with a Pi in it."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not on the PATH")
    made = Terminal(pi_home)
    yield made
    made.close()
