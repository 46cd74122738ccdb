"""`server`: starting it, stopping it, being it, and how it is."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import (
    PayloadInvalid,
    ProtocolViolation,
    Unavailable,
    WrongUsage,
)
from pi_workflows.base.limits import STOP_GRACE_MS
from pi_workflows.cli.connection import ask, client, state_directory
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import age, plural, size
from pi_workflows.cli.outline import value_lines
from pi_workflows.cli.termination import die_when_terminated
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.server import (
    Calibration,
    ServerReport,
    ServerStatus,
    ServerStop,
    ServerStopping,
)
from pi_workflows.server.start import start_detached

_MS_PER_SECOND: Final = 1_000
_US_PER_MS: Final = 1_000
# What a server needs beyond its grace to put its file in order.
_CLOSING_MS: Final = 30_000
_LABEL: Final = 12


def start_server(invocation: Invocation) -> int:
    """Start the server in the background, or find one.

    Returns:
        The exit code.

    Raises:
        Incompatible: The database is refused.
        Corrupt: The database is damaged.
        Refused: The state directory is refused.
        Unavailable: The server did not become ready.
    """
    result = start_detached(state_directory().root)
    document: dict[str, Json] = {"state": "running", "started": result.started}
    if result.pid is not None:
        document["pid"] = result.pid
    words = "Started." if result.started else "A server is running already."
    _tell(invocation, document, words if result.pid is None else f"{words} Process {result.pid}.")
    return 0


def stop_server(invocation: Invocation, *, grace: float | None, is_now: bool) -> int:
    """Stop the server in order and wait until it is gone.

    Args:
        invocation: The invocation.
        grace: Seconds that effects which are applying may take; None is the server's own bound.
        is_now: They are not waited for.

    Returns:
        The exit code.

    Raises:
        WrongUsage: Both were given.
        Unavailable: It did not end in time.
        OutcomeUnknown: As `Client.request`.
    """
    if is_now and grace is not None:
        raise WrongUsage("--now waits for nothing; leave out --grace.", field="--grace")
    grace_ms = 0 if is_now else None if grace is None else int(grace * _MS_PER_SECOND)
    try:
        with client(invocation, may_start=False) as server:
            pid = _pid(server)
            # Held from before the end on: the number may name another process afterwards.
            process = os.pidfd_open(pid)
            payload = ServerStop(grace_ms=grace_ms)
            reply = ask(server, Operation.SERVER_STOP, payload, key=invocation.key)
    except Unavailable as error:
        if error.reason_code != "serverNotRunning":
            raise
        _tell(invocation, {"state": "stopped", "stopped": False}, "No server is running.")
        return 0
    for run_id in ServerStopping.parse(reply.receipt).applying_manual_runs or ():
        invocation.output.note(
            f"{run_id}: its effect is applying; if it does not end in time, a person has to say"
            " what became of it"
        )
    _wait_for_end(process, (STOP_GRACE_MS if grace_ms is None else grace_ms) + _CLOSING_MS)
    document: dict[str, Json] = {"state": "stopped", "stopped": True, "pid": pid}
    _tell(invocation, document, f"Stopped. Process {pid}.")
    return 0


def _pid(server: Client) -> int:
    """Return the server's process; it may be of another version, whose report has other members."""
    report = ask(server, Operation.SERVER_STATUS, ServerStatus()).receipt
    pid = report.get("pid") if isinstance(report, dict) else None
    if not isinstance(pid, int):
        raise ProtocolViolation("The server does not say which process it is.")
    return pid


def _wait_for_end(process: int, timeout_ms: int) -> None:
    """Wait until a process is gone, and let go of it."""
    end = select.poll()
    end.register(process, select.POLLIN)
    try:
        if not end.poll(timeout_ms):
            raise Unavailable(
                "The server is still putting its file in order.",
                code="stopping",
                hint="Look into host/logs/server.log in the state directory",
            )
    finally:
        os.close(process)


def run_server(invocation: Invocation) -> int:
    """Be the server until it is told to stop.

    Returns:
        The exit code: the server's.

    Raises:
        TransitionDenied: `serverRunning`: there is one already.
        Incompatible: As `start_server`.
    """
    # Nothing but this command needs the server's own code.
    from pi_workflows.server.main import serve  # noqa: PLC0415

    # A server has its own signals, and a database that outlives any end.
    die_when_terminated()
    state = state_directory()

    def announce(_: object) -> None:
        document: dict[str, Json] = {"state": "running", "started": True, "pid": os.getpid()}
        _tell(invocation, document, f"Serving {state.root}. Ctrl-C stops in order.")

    return serve(state.root, foreground=True, announce=announce)


def show_server(invocation: Invocation, *, calibrates: bool) -> int:
    """Show how the server is.

    Args:
        invocation: The invocation.
        calibrates: Measure raw commits first.

    Returns:
        The exit code.

    Raises:
        Unavailable: `serverNotRunning`: there is none.
    """
    with client(invocation, may_start=False) as server:
        payload = ServerStatus(calibrate=True if calibrates else None)
        receipt = ask(server, Operation.SERVER_STATUS, payload).receipt
    if invocation.is_json:
        members = receipt if isinstance(receipt, dict) else {}
        invocation.output.document({"schema": "pi-workflows.cli-server-status.v1", **members})
        return 0
    try:
        lines = list(_report_lines(ServerReport.parse(receipt)))
    except PayloadInvalid:
        # A server of another version tells other things; it is asked for its status all the same.
        lines = value_lines(receipt)
    invocation.output.lines(lines)
    return 0


def _report_lines(report: ServerReport) -> Iterator[str]:
    """Yield how the server is."""
    up = age(SystemClock().now_ms() - report.started_at)
    yield _fact("server", f"{report.state}, process {report.pid}, {report.package_version}")
    yield _fact("up", f"{up}, epoch {report.epoch}, {plural(report.connected_clients, 'client')}")
    yield _fact("runners", f"{report.active_runners} of {report.max_runners}")
    yield _fact(
        "runs",
        f"{report.queued_runs:,} queued, {report.running_runs:,} running,"
        f" {report.parked_runs:,} standing still ({report.waiting_runs:,} for an answer)",
    )
    commit = report.commit
    if commit.samples:
        yield _fact(
            "commits",
            f"p50 {_ms(commit.p50_us)}, p99 {_ms(commit.p99_us)},"
            f" {commit.group_mean:.1f} commands each, {commit.group_max} at most"
            f" (of {commit.samples:,})",
        )
    yield _fact("disk", _disk(report.calibration))
    yield _fact("log", f"{size(report.wal_bytes)} not yet in the file")
    trouble = (
        (report.ambiguous_effects, "ambiguous effect"),
        (report.expired_claims, "expired claim"),
        (report.lifecycle_contradictions, "contradiction"),
        (report.state_violations, "violation"),
    )
    found = [plural(count, name) for count, name in trouble if count]
    yield _fact("trouble", ", ".join(found) if found else "none")


def _disk(calibration: Calibration | None) -> str:
    """Return what the disk allows."""
    if calibration is None:
        return "not measured; server status --calibrate does"
    words = f"raw commits p50 {_ms(calibration.p50_us)}, p99 {_ms(calibration.p99_us)}"
    measured = age(SystemClock().now_ms() - calibration.measured_at)
    ratio = ""
    if calibration.ratio_p50 is not None and calibration.ratio_p99 is not None:
        ratio = f"; ours take {calibration.ratio_p50:g} and {calibration.ratio_p99:g} times that"
    return f"{words} (measured {measured} ago){ratio}" if measured != "now" else f"{words}{ratio}"


def _ms(microseconds: int) -> str:
    """Return microseconds as milliseconds."""
    return f"{microseconds / _US_PER_MS:.2f} ms"


def _fact(label: str, text: str) -> str:
    """Return one fact with its label."""
    return f"{label:<{_LABEL}}{text}"


def _tell(invocation: Invocation, document: dict[str, Json], words: str) -> None:
    """Write `pi-workflows.cli-server.v1`, or the same in words."""
    if invocation.is_json:
        invocation.output.document({"schema": "pi-workflows.cli-server.v1", **document})
    else:
        invocation.output.line(words)
