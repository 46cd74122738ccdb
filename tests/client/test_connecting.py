"""How a client that waits finds its server, starts it, and knows that it is one."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.base.errors import (
    Outcome,
    ProtocolViolation,
    Unavailable,
)
from pi_workflows.base.limits import CLIENT_START_MS
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.operations import Operation
from tests.client.peer import (
    VERSION,
    Listener,
    hello,
    response,
    serving,
)
from tests.client.stage import StillClock, new_client, pause


def test_another_version_is_left_alone(path: Path, clock: StillClock) -> None:
    """Only status and stop go to a server of another version; the error asks for matching ones."""
    seen: list[str] = []

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=hello("9.9.9"))
        for _ in range(2):
            request = connection.request()
            seen.append(request["operation"])
            connection.send(response(request))
        assert connection.until_closed() == b""
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with pytest.raises(Unavailable) as mismatch:
            pause(client)
        assert mismatch.value.reason_code == "versionMismatch"
        client.request(Operation.SERVER_STATUS, {}).done()
        client.request(Operation.SERVER_STOP, {}).done()
    assert seen == ["server.status", "server.stop"]


def test_a_missing_server_is_not_started_by_itself(path: Path, clock: StillClock) -> None:
    """Without a starter a missing socket, and one that nobody serves, are `serverNotRunning`."""
    with pytest.raises(Unavailable) as missing:
        new_client(path, clock).connect()
    assert missing.value.reason_code == "serverNotRunning"
    abandoned = socket.socket(socket.AF_UNIX)
    abandoned.bind(str(path))
    abandoned.close()
    with pytest.raises(Unavailable) as missing:
        new_client(path, clock).connect()
    assert missing.value.reason_code == "serverNotRunning"


def test_a_missing_server_is_started_once(path: Path, clock: StillClock) -> None:
    """The starter is called once, then the client looks every 50 ms until the server listens."""
    started: list[Listener] = []
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        clock.sleep(seconds)
        if len(looks) == 3:
            started.append(Listener(path))
            started[0].serve()

    calls: list[None] = []
    endpoint = Endpoint(str(path), VERSION, starter=lambda: calls.append(None))
    client = Client(endpoint, clock=clock, sleep=sleep)
    client.connect()
    assert client.server_version == VERSION
    assert (looks, len(calls)) == ([0.05] * 3, 1)
    client.close()
    started[0].close()


def test_a_server_that_does_not_come_up_is_given_up(path: Path, clock: StillClock) -> None:
    """After ten seconds without a server that was started, the client says so."""
    client = new_client(path, clock, starter=lambda: None)
    began_ms = clock.ms
    with pytest.raises(Unavailable) as failed:
        client.connect()
    assert failed.value.reason_code == "serverStartFailed"
    assert clock.ms - began_ms == CLIENT_START_MS


def test_waiting_for_a_reply_starts_the_server_again(path: Path, clock: StillClock) -> None:
    """A server that ended under a command is started by the client, which then asks again."""
    seen: list[dict[str, Any]] = []

    def first(listener: Listener) -> None:
        connection = listener.accept()
        seen.append(connection.request())
        listener.close()
        connection.close()

    started: list[Listener] = []

    def adopt(request: dict[str, Any]) -> bytes:
        seen.append(request)
        return response(request, "adopted")

    def start() -> None:
        started.append(Listener(path))
        started[0].serve(adopt)

    with serving(path, first), new_client(path, clock, starter=start) as client:
        assert pause(client) is Outcome.ADOPTED
    assert len(started) == 1
    assert seen[0]["idempotencyKey"] == seen[1]["idempotencyKey"]
    started[0].close()


def test_a_client_that_waits_for_nothing_starts_nothing(path: Path, clock: StillClock) -> None:
    """A server that left because it was idle is not called back by an idle client."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        listener.close()
        connection.close()

    calls: list[None] = []
    with (
        serving(path, script),
        new_client(path, clock, starter=lambda: calls.append(None)) as client,
    ):
        assert client.next_event(timeout_ms=20_000) is None
    assert calls == []


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n", b"{}\n"])
def test_something_else_that_listens_is_not_spoken_to(
    path: Path, clock: StillClock, garbage: bytes
) -> None:
    """A peer that is no server of ours gets nothing from us."""
    sent: list[bytes] = []

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=garbage)
        sent.append(connection.until_closed())
        connection.close()

    with serving(path, script), pytest.raises(ProtocolViolation):
        new_client(path, clock).connect()
    assert sent == [b""]


@pytest.mark.slow
def test_a_server_that_says_nothing_is_unreachable(path: Path, clock: StillClock) -> None:
    """The hello has two seconds; they are real ones, as the socket measures them."""

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=b"")
        assert connection.until_closed() == b""
        connection.close()

    with serving(path, script), pytest.raises(Unavailable) as silent:
        new_client(path, clock).connect()
    assert silent.value.reason_code == "serverUnreachable"
