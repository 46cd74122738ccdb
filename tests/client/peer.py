"""A scripted server on a real socket: the peer of a client under test.

It is written from the protocol alone. A test's script serves the connections that it accepts, one
after another, in a thread of its own.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

VERSION: Final = "1.2.3"
_SCHEMA: Final = "pi-workflows.client.v1"
# A script that waits longer than any test does has lost its client.
_PATIENCE_SECONDS: Final = 30


def line(message: dict[str, Any]) -> bytes:
    """Return a message as its frame."""
    text = json.dumps(
        {"schema": _SCHEMA, **message}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return text.encode() + b"\n"


def hello(version: str = VERSION) -> bytes:
    """Return a server's hello."""
    return line({"type": "hello", "connectionId": "connection-1", "packageVersion": version})


def response(request: dict[str, Any], outcome: str = "accepted", **members: Any) -> bytes:
    """Return the answer to a request."""
    answer = {"type": "response", "requestId": request["requestId"], "outcome": outcome}
    return line({**answer, **members})


def snapshot(subscription_id: str, revision: int) -> bytes:
    """Return an event with a whole run view."""
    return line(
        {
            "type": "event",
            "event": "run_snapshot",
            "subscriptionId": subscription_id,
            "runId": "build-1",
            "revision": revision,
            "payload": {"revision": revision},
        }
    )


class Connection:
    """One client's connection, as the server sees it."""

    def __init__(self, accepted: socket.socket) -> None:
        self._socket = accepted
        self._lines = accepted.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send frames, or whatever else."""
        self._socket.sendall(data)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Yield each request until the client closes."""
        for data in self._lines:
            request: dict[str, Any] = json.loads(data)
            assert (request.pop("schema"), request.pop("type")) == (_SCHEMA, "request")
            yield request

    def request(self) -> dict[str, Any]:
        """Return the next request. Fails when the client closes instead."""
        request = next(self.requests(), None)
        assert request is not None, "the client closed"
        return request

    def until_closed(self) -> bytes:
        """Wait until the client closes; return what it sent before."""
        return self._lines.read()

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._socket.close()


class Listener:
    """The server's socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_PATIENCE_SECONDS)
        self._socket.bind(str(path))
        self._socket.listen()
        self._path = path

    def accept(self, *, greeting: bytes | None = None) -> Connection:
        """Accept a client and greet it."""
        accepted, _ = self._socket.accept()
        accepted.settimeout(_PATIENCE_SECONDS)
        connection = Connection(accepted)
        connection.send(hello() if greeting is None else greeting)
        return connection

    def serve(self, answer: Callable[[dict[str, Any]], bytes] = response) -> None:
        """Answer the requests of the next client, in a thread that ends with it."""

        def run() -> None:
            connection = self.accept()
            for request in connection.requests():
                connection.send(answer(request))
            connection.close()

        threading.Thread(target=run, daemon=True).start()

    def close(self) -> None:
        """Stop listening and remove the socket, as a server does that ends; once.

        The next server's socket may have the name by the second time.
        """
        if self._socket.fileno() >= 0:
            self._path.unlink(missing_ok=True)
            self._socket.close()


@contextmanager
def serving(path: Path, script: Callable[[Listener], None]) -> Generator[None]:
    """Run a script in a thread while the body runs; its failure is the test's."""
    failures: list[BaseException] = []
    listener = Listener(path)

    def run() -> None:
        try:
            script(listener)
        except BaseException as error:  # noqa: BLE001 - handed to the test below
            failures.append(error)
        finally:
            listener.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
        thread.join(_PATIENCE_SECONDS)
        assert not thread.is_alive(), "the script still waits for its client"
    finally:
        listener.close()
    if failures:
        raise failures[0]
