"""The server's process: its lock, its signals, its life, and the status with which it ends."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import Corrupt, TransitionDenied, Unavailable, WorkflowsError
from pi_workflows.base.limits import SERVER_LOOK_MS, SERVER_READY_MS, STOP_GRACE_MS
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS
from pi_workflows.base.version import package_version
from pi_workflows.server import lock
from pi_workflows.server.compose import compose
from pi_workflows.server.housekeeping import watch_socket
from pi_workflows.server.lifetime import Lifetime
from pi_workflows.server.listener import Accepting, bind, first_failure, origin
from pi_workflows.server.lock import ProcessLock
from pi_workflows.server.log import ServerLog
from pi_workflows.server.paths import StateDirectory, prepare
from pi_workflows.server.services import Services
from pi_workflows.server.settings import Settings, runners_max
from pi_workflows.server.start import ReadyPipe
from pi_workflows.server.stop import Stop

FAILED: Final = 70
"""The status of a server whose part failed, or that does not know what its last commit left."""


def serve(
    directory: Path,
    *,
    foreground: bool,
    ready_fd: int | None = None,
    announce: Callable[[StateDirectory], None] = lambda _state: None,
) -> int:
    """Be the server of a state directory until it is told to stop.

    Args:
        directory: The state directory.
        foreground: It never leaves by itself, and is refused beside another server. Otherwise it
            leaves when it is idle, and adopts a server that came first.
        ready_fd: The writing end of a pipe on which somebody waits for `ready`; None when nobody
            does.
        announce: Called once when requests are answered.

    Returns:
        The exit status: 0 after an orderly stop, 4 when the database is damaged, 70 after any other
        failure.

    Raises:
        WorkflowsError: It cannot start; nothing was changed. With a pipe the error is said there.
    """
    report = ReadyPipe(ready_fd)
    try:
        state = prepare(directory)
        held = ProcessLock.take(state.lock) if foreground else _take_or_adopt(state)
    except WorkflowsError as error:
        report.failed(error)
        raise
    if held is None:
        report.ready(started=False, pid=lock.holder(state.lock))
        return 0
    try:
        return _live(state, report, announce, foreground=foreground)
    except WorkflowsError as error:
        report.failed(error)
        raise
    finally:
        held.close()


def _take_or_adopt(state: StateDirectory) -> ProcessLock | None:
    """Take the lock, or wait for the server that has it; None when that one answers.

    Raises:
        Unavailable: `serverStartFailed`: the other one neither answers nor ends.
    """
    # The starter must still be there to hear it.
    deadline_ns = time.monotonic_ns() + SERVER_READY_MS * NS_PER_MS * 4 // 5
    while True:
        try:
            return ProcessLock.take(state.lock)
        except TransitionDenied:
            if _answers(state.socket):
                return None
        if time.monotonic_ns() >= deadline_ns:
            raise Unavailable(
                "Another server holds the lock and does not answer.",
                code="serverStartFailed",
                hint=f"Look into {state.log}",
            )
        time.sleep(SERVER_LOOK_MS / MS_PER_SECOND)


def _answers(path: Path) -> bool:
    """Whether a server accepts connections."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(os.fspath(path)) == 0


def _live(
    state: StateDirectory,
    report: ReadyPipe,
    announce: Callable[[StateDirectory], None],
    *,
    foreground: bool,
) -> int:
    """Live as long as it takes; a server that slept past its claim lives again with a new epoch."""
    settings = Settings(
        environment=dict(os.environ),
        package_version=package_version(),
        runners_max=runners_max(os.environ),
        leaves_when_idle=not foreground,
    )
    log = ServerLog(state.log, SystemClock())

    def ready() -> None:
        report.ready(started=True, pid=os.getpid())
        if not lives:
            announce(state)

    lives = 0
    try:
        while True:
            parts = compose(state, settings, clock=SystemClock(), log=log)
            life = Lifetime(parts, leaves_when_idle=settings.leaves_when_idle)
            trio.run(_until_stopped, life, parts.services, ready)
            if not life.has_slept:
                return 0
            lives += 1
    except WorkflowsError:
        raise
    except Exception as error:  # noqa: BLE001 - the outermost frame: one line instead of a traceback
        log.write("server.failed", error=origin(error))
        found = first_failure(error)
        report.failed(found if isinstance(found, WorkflowsError) else _failed(state))
        return found.exit_code if isinstance(found, Corrupt) else FAILED
    finally:
        log.close()


def _failed(state: StateDirectory) -> Unavailable:
    """Return what a starter is told of a failure of ours."""
    return Unavailable("The server failed.", code="serverFailed", hint=f"Look into {state.log}")


async def _until_stopped(life: Lifetime, services: Services, ready: Callable[[], None]) -> None:
    """Live until the end, which the signals of a terminal or a supervisor ask for too."""
    path = services.state.socket

    async with trio.open_nursery() as nursery:

        def listen() -> Accepting:
            lock.remove_stale_socket(path)
            listener = bind(path, services.log)
            nursery.start_soon(_leave_unreachable, path, services)
            return listener

        await nursery.start(_obey_signals, services.stop)
        try:
            await life.run(listen, ready)
        finally:
            path.unlink(missing_ok=True)
        nursery.cancel_scope.cancel()


async def _leave_unreachable(path: Path, services: Services) -> None:
    """Stop in order when the socket was removed or replaced."""
    await watch_socket(path)
    services.log.write("server.unreachable")
    services.stop.request()


async def _obey_signals(
    stop: Stop, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Stop in order at the first signal, without waiting for effects at the second."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            stop.request(0 if stop.is_requested else STOP_GRACE_MS)
