"""A real installation in a directory of its own, and a hand that kills its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.version import package_version
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.kernel.verify import verify
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from projections import route

# Far above what a slow machine needs; a test that gets here has hung.
DEADLINE_S = 60.0
_POLL_S = 0.02


@dataclass
class Installation:
    """One state directory with a server that the test starts and kills.

    Attributes:
        root: Everything the test makes lies below.
        started: Processes of servers that were started, to be reaped.
    """

    root: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list["subprocess.Popen[bytes]"])

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.root / "state"

    @property
    def project(self) -> Path:
        """The project directory."""
        return self.root / "project"

    def write(self, name: str, text: str) -> Path:
        """Write a workflow file into the project."""
        self.project.mkdir(exist_ok=True)
        file = self.project / f"{name}_workflow.py"
        file.write_text(text, encoding="utf-8")
        return file

    def environment(self) -> dict[str, str]:
        """Return the environment that every command of this installation has."""
        return {**os.environ, "PI_WORKFLOWS_STATE_DIR": str(self.state)}

    def start(self) -> None:
        """Start a server and wait until it answers."""
        server = subprocess.Popen(
            [sys.executable, "-m", "pi_workflows.server", "--foreground"],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
        )
        self.started.append(server)
        await_true(lambda: self._answers(server), "the server to answer")

    def _answers(self, server: subprocess.Popen[bytes]) -> bool:
        """Whether the server answers; it must not have ended."""
        assert server.poll() is None, f"the server ended with {server.returncode}"
        try:
            with self.client():
                return True
        except Exception:  # noqa: BLE001 - not there yet, whatever it is called
            return False

    def client(self, name: str = "test") -> Client:
        """Return a client that never starts a server by itself."""
        return Client(
            Endpoint(
                socket_path=str(self.state / "host" / "host.sock"),
                package_version=package_version(),
                client_id=name,
            )
        )

    def request(self, operation: str, payload: Json = None, **named: str) -> Reply:
        """Ask the server once."""
        with self.client() as client:
            return client.request(
                Operation(operation),
                payload or {},
                run_id=named.get("run_id"),
                key=named.get("key"),
            )

    def run(self, file: Path, run_id: str, run_input: Json = None) -> Reply:
        """Resolve a workflow and start it under a run ID."""
        target: dict[str, Json] = {
            "projectPath": str(self.project),
            "target": str(file),
            "input": run_input if run_input is not None else {},
        }
        resolved = self.request("workflow.resolve", target).done().receipt
        assert isinstance(resolved, dict)
        payload: dict[str, Json] = {
            **resolved,
            "projectPath": str(self.project),
            "originSessionId": f"local-{run_id}",
            "executionMode": "headless",
            "launchOptions": {"environment": {"PATH": os.environ["PATH"]}},
        }
        return self.request("run.start", payload, run_id=run_id, key=f"start-{run_id}")

    def view(self, run_id: str) -> dict[str, Json]:
        """Return the run's view."""
        receipt = self.request("view.run.get", run_id=run_id).done().receipt
        assert isinstance(receipt, dict)
        return receipt

    def status(self, run_id: str) -> str:
        """Return the run's display status."""
        return text_at(self.view(run_id), "display", "status")

    def await_status(self, run_id: str, *statuses: str) -> str:
        """Wait until the run's display status is one of these, and return it."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [self.status(run_id)]
            return found[0] in statuses

        await_true(is_there, f"{run_id} to be {statuses}", lambda: str(found))
        return found[0]

    def kill_server(self) -> None:
        """Kill the server as a power cut would."""
        server = self.started[-1]
        server.kill()
        server.wait(DEADLINE_S)

    def runners(self) -> list[int]:
        """Return the process IDs of the runners that the registry names."""
        return [
            pid
            for file in (self.state / "host" / "children").glob("*.json")
            if isinstance(entry := _entry(file), dict)
            and entry.get("kind") == "run"
            and isinstance(pid := entry.get("pid"), int)
        ]

    def kill_runners(self) -> int:
        """Kill every runner; return how many there were."""
        killed = 0
        for pid in self.runners():
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                continue
        return killed

    def stop(self) -> None:
        """Stop the server in order; the state is one file afterwards."""
        server = self.started[-1]
        if server.poll() is None:
            server.terminate()
            server.wait(DEADLINE_S)
        assert server.returncode == 0

    def processes(self) -> list[int]:
        """Return every process whose working directory lies in this installation."""
        return [pid for pid, place in _working_places() if place.is_relative_to(self.root)]

    def assert_sound(self) -> None:
        """Assert that an orderly stop left one sound file and no process."""
        file = self.state / "state.sqlite"
        assert sorted(path.name for path in self.state.glob("state.sqlite*")) == ["state.sqlite"]
        with open_inactive(file, live_directory=None) as source:
            result = verify(
                source, quick=False, scratch=lambda: create_scratch(None), projectors=route
            )
        assert result.violations == ()
        assert self.processes() == []


def _entry(file: Path) -> Json:
    """Return a registry entry; None when it vanished under us."""
    try:
        return canonical.decode(file.read_bytes())
    except (FileNotFoundError, PayloadInvalid):
        return None


def _working_places() -> Iterator[tuple[int, Path]]:
    """Yield the working directory of every process that we may look at."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield int(entry.name), (entry / "cwd").readlink()
            except OSError:
                continue


def await_true(
    is_true: Callable[[], bool], what: str, found: Callable[[], str] = lambda: ""
) -> None:
    """Wait until something is true, within a deadline that only a hang reaches."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_true():
        assert time.monotonic() < deadline, f"waited too long for {what}: {found()}"
        time.sleep(_POLL_S)


def text_at(document: Json, *path: str) -> str:
    """Return the text at a path of a document."""
    value = document
    for name in path:
        assert isinstance(value, dict), (path, value)
        value = value[name]
    assert isinstance(value, str), (path, value)
    return value
