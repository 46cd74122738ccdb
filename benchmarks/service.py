"""A server in a process of its own, on its socket, with runs that wait for an answer.

Pausing such a run and letting it go on are commands with everything that belongs to one (a receipt,
an event, a patch), and need no runner.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.version import package_version
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.operations import Operation
from pi_workflows.server import lock
from pi_workflows.server.start import start_detached

_WORKFLOW: Final = '''"""Ask."""
from pydantic import BaseModel
from pi_workflows import checkpoint, define_workflow

class Input(BaseModel):
    pass

class Answer(BaseModel):
    count: int

workflow = define_workflow(
    name="asking",
    input=Input,
    start="ask",
    nodes={"ask": checkpoint(summary="How many?", output=Answer)},
)
'''
# Short: a path to a socket has few bytes.
_STATE: Final = "s"
_LOOK_SECONDS: Final = 0.01
_PATIENCE_SECONDS: Final = 60.0


class Service:
    """A server that runs.

    Attributes:
        socket_path: Where it listens.
    """

    def __init__(self, directory: Path) -> None:
        """Take over a server that was started; use `service`."""
        self.socket_path = str(directory / _STATE / "host" / "host.sock")
        self._project = directory / "project"
        self._workflow = self._project / "asking_workflow.py"
        self._run_ids: list[str] = []

    def endpoint(self) -> Endpoint:
        """Return what a new client needs to know."""
        return Endpoint(self.socket_path, package_version())

    def waiting_runs(self, count: int) -> list[str]:
        """Return runs that wait for an answer; those that are missing are started."""
        with Client(self.endpoint()) as client:
            resolved = self._resolved(client)
            missing = [f"run-{number}" for number in range(len(self._run_ids), count)]
            for run_id in missing:
                payload: Json = {**resolved, "originSessionId": f"local-{run_id}"}
                client.request(Operation.RUN_START, payload, run_id=run_id).done()
            for run_id in missing:
                _await_question(client, run_id)
        self._run_ids += missing
        return self._run_ids[:count]

    def _resolved(self, client: Client) -> dict[str, Json]:
        """Return what starts a run of the workflow."""
        project = str(self._project)
        request: Json = {"projectPath": project, "target": str(self._workflow), "input": {}}
        resolved = client.request(Operation.WORKFLOW_RESOLVE, request).done().receipt
        assert isinstance(resolved, dict), resolved
        return {**resolved, "projectPath": project, "executionMode": "headless"}


def _await_question(client: Client, run_id: str) -> None:
    """Wait until a run has asked, for which its runner has left."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        match client.request(Operation.VIEW_RUN_GET, {}, run_id=run_id).done().receipt:
            case {"display": {"status": "waiting"}}:
                return
            case _:
                time.sleep(_LOOK_SECONDS)
    raise AssertionError(f"{run_id} asks nothing")


@contextmanager
def service(directory: Path) -> Generator[Service]:
    """Run a server of an empty directory for as long as the body runs.

    Args:
        directory: Where its state and a project are made: on the disk that is measured.
    """
    directory = directory.resolve()
    state = directory / _STATE
    made = Service(directory)
    (directory / "project").mkdir(parents=True)
    (directory / "project" / "asking_workflow.py").write_text(_WORKFLOW, encoding="utf-8")
    start_detached(state)
    try:
        yield made
    finally:
        with Client(made.endpoint()) as client:
            client.request(Operation.SERVER_STOP, {}).done()
        until = time.monotonic() + _PATIENCE_SECONDS
        while lock.is_held(state / "host" / "host.lock"):
            assert time.monotonic() < until, "the server does not end"
            time.sleep(_LOOK_SECONDS)
