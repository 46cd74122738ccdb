"""The server itself.

Payloads and answers. Both operations are allowed between different package versions.
"""

from __future__ import annotations

from typing import Literal

from pi_workflows.protocol.wire import Count, Id, Many, Maybe, Number, Payload, Text, WireModel


class ServerStatus(Payload):
    """`server.status`.

    With `calibrate` it measures raw commits in a scratch file beside the state.
    """

    calibrate: Maybe[bool] = None


class ServerStop(Payload):
    """`server.stop`: waits so long for effects that are applying; 0 does not wait."""

    grace_ms: Maybe[Count] = None


class CommitStats(WireModel):
    """How the newest commits went, in microseconds, and how many commands one held."""

    p50_us: Count
    p99_us: Count
    group_mean: float
    group_max: Count
    samples: Count


class Calibration(WireModel):
    """Raw commits on the same disk, in microseconds, and the server's own as multiples of them."""

    measured_at: Count
    p50_us: Count
    p99_us: Count
    samples: Count
    ratio_p50: Maybe[float] = None
    ratio_p99: Maybe[float] = None


class ServerReport(WireModel):
    """Answer of `server.status`. Times are ms since the epoch."""

    state: Literal["starting", "running", "stopping"]
    pid: Number
    package_version: Text
    epoch: Number
    socket_available: bool
    started_at: Count
    heartbeat_at: Count
    expires_at: Count
    active_runners: Count
    connected_clients: Count
    queued_runs: Count
    running_runs: Count
    parked_runs: Count
    waiting_runs: Count
    expired_claims: Count
    pending_interactions: Count
    ambiguous_effects: Count
    pending_resource_managers: Count
    active_resource_runners: Count
    execution_runners: Count
    max_runners: Number
    lifecycle_contradictions: Count
    state_violations: Count
    wal_bytes: Count
    commit: CommitStats
    calibration: Maybe[Calibration] = None


class ServerStopping(WireModel):
    """Receipt of `server.stop`.

    `applying_manual_runs` names the runs whose manual effect is applying now: it becomes ambiguous
    when the grace ends first.
    """

    stopping: Literal[True]
    applying_manual_runs: Maybe[Many[Id]] = None
