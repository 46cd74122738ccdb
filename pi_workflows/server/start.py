"""Starting a server in the background and hearing whether it is ready.

The child inherits the writing end of a pipe. It writes one line when it is ready, or why it cannot
be; its standard error goes into the same pipe until then, so that an interpreter that does not even
start can say so.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    Corrupt,
    Incompatible,
    PayloadInvalid,
    Refused,
    Unavailable,
    WorkflowsError,
)
from pi_workflows.base.limits import SERVER_READY_MS
from pi_workflows.server.paths import STATE_DIR_VARIABLE, WORKER_VARIABLE

_REPORT_BYTES_MAX: Final = 1 << 16
# Where the child finds the pipe, beside its standard streams.
_READY: Final = 3
_ERRORS: Final[Mapping[str, type[WorkflowsError]]] = {
    kind.__name__: kind for kind in (Incompatible, Corrupt, Unavailable, Refused)
}


@dataclass(frozen=True, slots=True)
class StartResult:
    """What `start_detached` came to.

    Attributes:
        started: Whether this call started the server; otherwise one was there already.
        pid: The server's process, when it is known.
    """

    started: bool
    pid: int | None


class ReadyPipe:
    """The child's end: says once what became of the start.

    Args:
        descriptor: The writing end; None when nobody waits.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def ready(self, *, started: bool, pid: int | None) -> None:
        """Say that a server is there."""
        self._say({"started": started, "pid": pid})

    def failed(self, error: WorkflowsError) -> None:
        """Say why there is none."""
        kind = next((name for name, kind in _ERRORS.items() if isinstance(error, kind)), "Refused")
        self._say(
            {
                "error": kind,
                "message": error.message,
                "code": error.reason_code,
                "field": error.field,
                "hint": error.hint,
            }
        )

    def _say(self, report: dict[str, Json]) -> None:
        """Write the report and let go of the pipe, standard error included."""
        if self._descriptor is None:
            return
        # Whoever waited may have been interrupted; the server is there for others all the same.
        with (
            suppress(BrokenPipeError),
            os.fdopen(self._descriptor, "wb", buffering=0) as pipe,
        ):
            pipe.write(canonical.encode(report) + b"\n")
        self._descriptor = None
        empty = os.open(os.devnull, os.O_WRONLY)
        os.dup2(empty, sys.stderr.fileno())
        os.close(empty)


def start_detached(directory: Path) -> StartResult:
    """Start a server in the background and wait until it is ready; adopt one that is there.

    Args:
        directory: The state directory.

    Returns:
        Whether it was started, and its pid.

    Raises:
        Incompatible: The database is refused.
        Corrupt: The database is damaged.
        Refused: The directory is refused.
        Unavailable: It did not become ready in time, or ended.
    """
    # A server that a step started outlives the step, so it carries no mark of its runner.
    environment = {name: value for name, value in os.environ.items() if name != WORKER_VARIABLE}
    reading, writing = os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-m", "pi_workflows.server", "--ready-fd", str(_READY)],
            {**environment, STATE_DIR_VARIABLE: str(directory)},
            # The pipe itself is never inheritable: a server that another thread starts at the same
            # time would hold it open, and its reader would wait for that server's end.
            file_actions=[
                (os.POSIX_SPAWN_DUP2, writing, 2),
                (os.POSIX_SPAWN_DUP2, 2, _READY),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            ],
            # No terminal's hangup and no Ctrl-C of ours may reach it.
            setsid=True,
        )
        os.close(writing)
        writing = -1
        report = _read_report(reading)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    return _result(report, pid)


def _read_report(reading: int) -> bytes:
    """Read until the child lets go of the pipe, or its time is over."""
    report = bytearray()
    readiness = select.poll()
    readiness.register(reading, select.POLLIN)
    while len(report) < _REPORT_BYTES_MAX and readiness.poll(SERVER_READY_MS):
        part = os.read(reading, _REPORT_BYTES_MAX)
        if not part:
            break
        report += part
    return bytes(report)


def _result(report: bytes, pid: int) -> StartResult:
    """Return what a report says, or raise the error that it names."""
    lines = report.splitlines() or [b""]
    try:
        document = canonical.decode(lines[-1])
    except PayloadInvalid:
        document = None
    if not isinstance(document, dict):
        last = lines[-1].decode("utf-8", "replace").strip()
        raise Unavailable(
            f"The server did not become ready: {last or 'it said nothing'}.",
            code="serverStartFailed",
            hint="Run it in the foreground to see more: pi-workflows server run",
        )
    started = document.get("started") is True
    if not started:
        # This child leaves: it is not the server.
        os.waitpid(pid, 0)
    if "error" in document:
        raise _error(document)
    named = document.get("pid")
    return StartResult(started=started, pid=named if isinstance(named, int) else None)


def _error(document: dict[str, Json]) -> WorkflowsError:
    """Return the error that a report names."""
    kind = _ERRORS.get(str(document["error"]), Refused)
    code, field, hint = document.get("code"), document.get("field"), document.get("hint")
    return kind(
        str(document.get("message")),
        code=code if isinstance(code, str) else None,
        field=field if isinstance(field, str) else None,
        hint=hint if isinstance(hint, str) else None,
    )
