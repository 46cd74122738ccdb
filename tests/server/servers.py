"""Server processes of one state directory, and what asks them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pi_workflows.base.canonical import Json
from pi_workflows.base.version import package_version
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.operations import Operation
from pi_workflows.server import lock
from pi_workflows.server.start import StartResult, start_detached


class Running:
    """Server processes of one state directory.

    Attributes:
        directory: The state directory.
    """

    def __init__(self, directory: Path) -> None:
        """Begin without a server."""
        self.directory = directory
        self.pids: set[int] = set()

    def start(self) -> StartResult:
        """Start a server in the background, or find the one that is there."""
        result = start_detached(self.directory)
        if result.pid is not None:
            self.pids.add(result.pid)
        return result

    def client(self) -> Client:
        """Return a client of it."""
        return Client(Endpoint(str(self.directory / "host" / "host.sock"), package_version()))

    def wait(self) -> None:
        """Wait until no server holds the lock."""
        deadline = time.monotonic() + 30
        while lock.is_held(self.directory / "host" / "host.lock"):
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(0.01)

    def end(self) -> None:
        """Kill what is left."""
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue


def members(value: Json) -> dict[str, Json]:
    """Return a JSON object's members."""
    assert isinstance(value, dict)
    return value


def report(client: Client) -> dict[str, Json]:
    """Return what a server says about itself."""
    return members(client.request(Operation.SERVER_STATUS, {}).done().receipt)
