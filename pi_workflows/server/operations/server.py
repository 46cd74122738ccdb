"""The server about itself: how it is, and its end."""

from __future__ import annotations

import os
from typing import Final

import trio

from pi_workflows.base.limits import STOP_GRACE_MS
from pi_workflows.base.sql import Read
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.run.state import run_state
from pi_workflows.protocol import server as protocol
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.server import ServerReport, ServerStatus, ServerStop, ServerStopping
from pi_workflows.server.latency import percentile
from pi_workflows.server.measurements import Calibration
from pi_workflows.server.operations.call import Call, known, remember, shown
from pi_workflows.server.operations.state import violations_now
from pi_workflows.server.services import Services
from pi_workflows.store.calibration import measure_commits
from pi_workflows.store.volatile import server_state
from pi_workflows.views.status import server_counts

_CALIBRATION_COMMITS: Final = 200
_NS_PER_US: Final = 1_000
_RATIO_DIGITS: Final = 2


async def status(services: Services, call: Call) -> Reply:
    """Return how the server is, and what its disk allows.

    Raises:
        Unavailable: The disk refused a calibration.
    """
    if call.read(ServerStatus).calibrate:
        services.measurements.calibration = await _calibrated(services)
    if services.measurements.violation_count is None:
        await violations_now(services)
    with services.store.snapshot() as read:
        return shown(_report(services, read))


async def stop(services: Services, call: Call) -> Reply:
    """Let the server end, after the effects that are applying now.

    Raises:
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    payload = call.read(ServerStop)
    with services.store.snapshot() as read:
        runs = _applying_manual(services, read)
    receipt = ServerStopping(stopping=True, applying_manual_runs=runs or None)
    reply = await remember(services, call.request, receipt.document())
    services.stop.request(STOP_GRACE_MS if payload.grace_ms is None else payload.grace_ms)
    return reply


def _report(services: Services, read: Read) -> ServerReport:
    """Return the answer of `server.status`."""
    now_ms = services.clock.now_ms()
    counts = server_counts(read, now_ms)
    claim = server_state(read)
    live = len(services.runners.live_runs())
    is_stopping = services.stop.is_requested
    return ServerReport(
        state="stopping" if is_stopping else "running",
        pid=os.getpid(),
        package_version=services.package_version,
        epoch=services.epoch,
        socket_available=not is_stopping,
        started_at=claim.started_at_ms or 0,
        heartbeat_at=claim.heartbeat_at_ms or 0,
        expires_at=claim.expires_at_ms or 0,
        active_runners=live,
        connected_clients=services.connections(),
        active_resource_runners=0,
        execution_runners=len(services.runners.runs),
        max_runners=services.runners_max,
        state_violations=services.measurements.violation_count or 0,
        wal_bytes=services.store.wal_bytes(),
        commit=services.writer.latency.report(),
        calibration=_calibration(services),
        **counts._asdict(),
    )


def _calibration(services: Services) -> protocol.Calibration | None:
    """Return the newest calibration, and the server's own commits as multiples of it."""
    raw = services.measurements.calibration
    if raw is None:
        return None
    own = services.writer.latency.report()
    return protocol.Calibration(
        measured_at=raw.at_ms,
        p50_us=raw.p50_us,
        p99_us=raw.p99_us,
        samples=raw.samples,
        ratio_p50=_ratio(own.p50_us, raw.p50_us) if own.samples else None,
        ratio_p99=_ratio(own.p99_us, raw.p99_us) if own.samples else None,
    )


def _ratio(own_us: int, raw_us: int) -> float:
    """Return how many times longer our commits take."""
    return round(own_us / max(1, raw_us), _RATIO_DIGITS)


async def _calibrated(services: Services) -> Calibration:
    """Measure raw commits in a thread; the writer goes on."""

    def measure() -> list[int]:
        return measure_commits(
            services.state.root,
            commit_count=_CALIBRATION_COMMITS,
            monotonic_ns=services.clock.monotonic_ns,
        )

    durations = sorted(await trio.to_thread.run_sync(measure))
    return Calibration(
        at_ms=services.clock.now_ms(),
        p50_us=percentile(durations, 50) // _NS_PER_US,
        p99_us=percentile(durations, 99) // _NS_PER_US,
        samples=len(durations),
    )


def _applying_manual(services: Services, read: Read) -> tuple[str, ...]:
    """Return the runs whose manual effect is under way now."""
    found: list[str] = []
    for run_id, held in services.runners.runs.items():
        effect = effects.applying(read, run_state(read, run_id).resource_id)
        if held.effects and effect is not None and effects.is_manual(read, effect):
            found.append(run_id)
    return tuple(found)
