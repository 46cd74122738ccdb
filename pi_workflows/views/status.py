"""How much is stored, and how much of it waits, works or stands still."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.sql import Read, load
from pi_workflows.protocol.state import StateCounts

SQL: Final = load(__package__, "status.sql")


class ServerCounts(NamedTuple):
    """What `server.status` counts in the database.

    Attributes:
        queued_runs: Runs that wait for a runner.
        running_runs: Runs that a runner has, or is about to have.
        parked_runs: Runs that stand still: waiting, paused, or stopped by an error.
        waiting_runs: Runs that wait for an answer.
        expired_claims: Claims whose time is over.
        pending_interactions: Questions without an answer.
        ambiguous_effects: Effects of which a person has to say what became of them.
        pending_resource_managers: Managed resources that are due or will be.
        lifecycle_contradictions: Runs whose queue entry says otherwise about their end.
    """

    queued_runs: int
    running_runs: int
    parked_runs: int
    waiting_runs: int
    expired_claims: int
    pending_interactions: int
    ambiguous_effects: int
    pending_resource_managers: int
    lifecycle_contradictions: int


class _StateCounts(NamedTuple):
    resources: int
    runs: int
    resource_managers: int
    decisions: int
    settings_scopes: int
    pending_interactions: int
    pending_follow_ups: int
    active_leases: int
    unsettled_effects: int


def state_counts(read: Read, now_ms: int) -> StateCounts:
    """Return how much of each is stored.

    Args:
        read: One consistent read.
        now_ms: Wall time by which claims are judged.

    Returns:
        The `counts` of `state.status`.
    """
    row = read.one(_StateCounts, SQL["state_counts"], now_ms=now_ms)
    assert row is not None
    return StateCounts(**row._asdict())


def server_counts(read: Read, now_ms: int) -> ServerCounts:
    """Return what waits, works and stands still.

    Args:
        read: One consistent read.
        now_ms: Wall time by which claims are judged.

    Returns:
        The counts of `server.status` that the database holds.
    """
    row = read.one(ServerCounts, SQL["server_counts"], now_ms=now_ms)
    assert row is not None
    return row
