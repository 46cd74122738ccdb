"""The server as a process: started once, ended by signals, followed by the next after a kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from pi_workflows.base.errors import (
    Incompatible,
    Outcome,
    TransitionDenied,
    Unavailable,
    WorkflowsError,
)
from pi_workflows.protocol import envelope
from pi_workflows.protocol.envelope import Request
from pi_workflows.protocol.operations import Operation
from pi_workflows.server import main
from pi_workflows.server.start import StartResult
from tests.server.servers import Running, report

pytestmark = pytest.mark.slow

_DEADLINE_SECONDS = 60


def test_it_starts_serves_and_stops(running: Running) -> None:
    """A server is ready when its start returns, and leaves one file at its end."""
    started = running.start()
    assert started.started
    with running.client() as client:
        said = report(client)
        assert (said["pid"], said["state"]) == (started.pid, "running")
        assert client.request(Operation.SERVER_STOP, {}).outcome is Outcome.ACCEPTED
    running.wait()
    left = sorted(path.name for path in running.directory.iterdir())
    assert left == ["host", "state.sqlite"]
    assert not (running.directory / "host" / "host.sock").exists()


def test_files_are_private(running: Running) -> None:
    """Whatever the umask, nobody else can reach the socket, the state or the log."""
    mask = os.umask(0)
    try:
        running.start()
    finally:
        os.umask(mask)
    places = ["state.sqlite", "host/host.sock", "host/host.lock", "host/logs/server.log"]
    modes = {(running.directory / place).stat().st_mode & 0o777 for place in places}
    assert modes == {0o600}


def test_the_loser_of_a_race_adopts_the_winner(running: Running) -> None:
    """Of many starts at once one server comes, and everybody gets its pid."""
    results: list[StartResult] = []
    threads = [threading.Thread(target=lambda: results.append(running.start())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.started for result in results].count(True) == 1
    assert len({result.pid for result in results}) == 1


def _await(is_true: Callable[[], bool]) -> None:
    """Wait until something is true, within a deadline that only a hang reaches."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def test_a_server_outlives_a_starter_that_is_gone(running: Running) -> None:
    """Nobody hears that it is ready, and it serves all the same."""
    reading, writing = os.pipe()
    os.close(reading)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "pi_workflows.server", "--ready-fd", str(writing)],
        env={**os.environ, "PI_WORKFLOWS_STATE_DIR": str(running.directory)},
        stdin=subprocess.DEVNULL,
        pass_fds=(writing,),
    )
    os.close(writing)
    try:
        # Until it has the lock, a start beside it would come first.
        _await(lambda: running.directory.joinpath("host", "host.sock").exists())
        found = running.start()
        assert (found.started, found.pid) == (False, child.pid)
    finally:
        child.kill()
        child.wait()
        running.pids.clear()


def test_the_second_server_in_the_foreground_is_refused(running: Running) -> None:
    """Beside a live server a second one says so, and changes nothing."""
    running.start()
    with pytest.raises(TransitionDenied) as caught:
        main.serve(running.directory, foreground=True)
    assert caught.value.reason_code == "serverRunning"
    with running.client() as client:
        assert report(client)["epoch"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(running: Running, number: signal.Signals) -> None:
    """SIGTERM and SIGINT end the server with status 0 and one self-contained file."""
    pid = running.start().pid
    assert pid is not None
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not (running.directory / "state.sqlite-wal").exists()


def test_a_killed_server_is_followed_by_the_next(running: Running) -> None:
    """After SIGKILL the next start removes the socket that is left and takes the next epoch."""
    pid = running.start().pid
    assert pid is not None
    with running.client() as client:
        client.request(Operation.RUN_PAUSE, {}, run_id="nobody")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert (running.directory / "host" / "host.sock").exists()
    assert running.start().started
    with running.client() as client:
        assert report(client)["epoch"] == 2


def test_a_refused_database_is_refused_to_the_starter(running: Running) -> None:
    """A database that is not ours ends the start with its own error, and keeps its bytes."""
    running.directory.mkdir(mode=0o700)
    file = running.directory / "state.sqlite"
    file.write_bytes(b"not a database, but somebody's")
    with pytest.raises(Incompatible) as caught:
        running.start()
    assert caught.value.exit_code == 4
    assert file.read_bytes() == b"not a database, but somebody's"


def test_a_refused_directory_is_refused_to_the_starter(running: Running) -> None:
    """A directory that others may write ends the start with one line that says what to do."""
    running.directory.mkdir(mode=0o700)
    running.directory.chmod(0o770)
    with pytest.raises(WorkflowsError) as caught:
        running.start()
    assert caught.value.reason_code == "directoryNotPrivate"
    assert caught.value.hint is not None


_FAILING = """
import sys
from pathlib import Path
from pi_workflows.base.errors import OutcomeUnknown
from pi_workflows.kernel.group import Kernel
from pi_workflows.server.main import serve

def fail(*arguments, **options):
    raise OutcomeUnknown("COMMIT failed")

def ready(state):
    Kernel.commit = fail
    print("ready", flush=True)

sys.exit(serve(Path(sys.argv[1]), foreground=True, announce=ready))
"""


def test_pitfall_05_an_unknown_outcome_ends_with_status_70(running: Running) -> None:
    """The process ends without a traceback, and the next one finds what the disk holds."""
    with subprocess.Popen(
        [sys.executable, "-c", _FAILING, str(running.directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as failing:
        assert failing.stdout is not None
        assert failing.stdout.readline() == "ready\n"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(running.directory / "host" / "host.sock"))
            pause = Request(
                request_id="request",
                client_id="client",
                operation=Operation.RUN_PAUSE,
                idempotency_key="key",
                payload={},
                run_id="run-1",
            )
            connection.sendall(envelope.encode(pause))
            answered = b"".join(iter(lambda: connection.recv(65_536), b""))
        _, errors = failing.communicate(timeout=30)
        assert b'"type":"hello"' in answered
        assert b'"type":"response"' not in answered
    assert (failing.returncode, errors) == (70, "")
    assert "OutcomeUnknown" in (running.directory / "host" / "logs" / "server.log").read_text()
    running.start()
    with running.client() as client:
        assert report(client)["epoch"] == 2


def test_an_interpreter_that_fails_says_so(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not even begin ends the start with the last line that it wrote."""
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    with pytest.raises(Unavailable) as caught:
        running.start()
    assert caught.value.reason_code == "serverStartFailed"
    assert "it said nothing" not in caught.value.message


def test_the_server_keeps_its_own_log(running: Running) -> None:
    """What happened stands in the log, one line each, and nothing was written to the terminal."""
    running.start()
    with running.client() as client:
        client.request(Operation.SERVER_STOP, {})
    running.wait()
    events = [
        line.split()[1]
        for line in (running.directory / "host" / "logs" / "server.log").read_text().splitlines()
    ]
    assert events[0] == "server.recovered"
    assert events[1] == "server.ready"
    assert events[-2:] == ["server.stopping", "server.stopped"]
