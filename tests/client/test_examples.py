"""What the packages' docstrings show happens."""

from __future__ import annotations

import asyncio
import doctest
import textwrap
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from pi_workflows import client, protocol
from pi_workflows.client import asyncio_client
from pi_workflows.client.endpoint import Endpoint
from tests.client import newsreel
from tests.client.peer import VERSION, Listener, response, serving
from tests.protocol.run_news import RUN

AsyncExample: TypeAlias = Callable[[Endpoint, str], Coroutine[object, object, None]]


def _script(listener: Listener) -> None:
    """Tell of a run that changes, leave, and come back without it."""
    connection = listener.accept()
    request = connection.request()
    connection.send(newsreel.begun(request, 4) + newsreel.small(request, 5))
    connection.close()
    connection = listener.accept()
    connection.send(response(connection.request(), "notFound"))
    connection.until_closed()
    connection.close()


def _example(name: str) -> Callable[[Endpoint, str], object]:
    """Return a function that the clients' docstring defines."""
    parts = textwrap.dedent(client.__doc__ or "").split("\n\n")
    shown = [textwrap.dedent(part) for part in parts if part.startswith("    ")]
    names: dict[str, object] = {"asyncio": asyncio, "open_client": asyncio_client.open_client}
    exec("\n\n".join(shown), names)  # noqa: S102 - it is our own text
    found = names[name]
    assert callable(found)
    return found


def test_the_example_of_the_protocol_is_true() -> None:
    """The state of a client works as shown, without a socket."""
    found = doctest.testmod(protocol)
    assert (found.failed, found.attempted) == (0, 8)


def test_the_example_that_waits_is_true(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is followed to its end with the lines that are shown."""
    with serving(path, _script):
        _example("follow")(Endpoint(str(path), VERSION), RUN)
    assert capsys.readouterr().out == "5 {'status': 'running'} ['summary/']\n"


def test_the_example_for_asyncio_is_true(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same on asyncio, as a task among others."""
    with serving(path, _script):
        example = cast("AsyncExample", _example("follow_async"))
        asyncio.run(example(Endpoint(str(path), VERSION), RUN))
    assert capsys.readouterr().out.splitlines()[-1].endswith(" True")
