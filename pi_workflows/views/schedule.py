"""What the server schedules by: runs that wait for a runner, and what an earlier server left."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.sql import Read, load

SQL: Final = load(__package__, "schedule.sql")


class QueuedRun(NamedTuple):
    """A run that waits for a runner; it may begin at `available_at`, wall time."""

    run_id: str
    available_at: int


class UnfinishedRun(NamedTuple):
    """A run that a runner worked on, and the steps that it had when that runner was launched."""

    run_id: str
    launch_step_total: int


class ClaimedRun(NamedTuple):
    """The run that a claim is about, and the effect when it is one's."""

    run_id: str
    effect_id: str | None


class _RunId(NamedTuple):
    value: str


def queued_runs(read: Read, limit: int) -> list[QueuedRun]:
    """Return at most so many runs that wait for a runner, in the order in which they are served."""
    return read.all(QueuedRun, SQL["queued_runs"], limit=limit)


def unfinished_runs(read: Read) -> list[UnfinishedRun]:
    """Return the runs that stand as being worked on."""
    return read.all(UnfinishedRun, SQL["unfinished_runs"])


def unsettled_runs(read: Read) -> list[str]:
    """Return the runs that ended, whose place in the queue does not show it yet."""
    return [row.value for row in read.all(_RunId, SQL["unsettled_runs"])]


def claimed_run(read: Read, resource_id: str) -> ClaimedRun | None:
    """Return what a claimed resource is, or None when it belongs to no run."""
    return read.one(ClaimedRun, SQL["claimed_run"], resource_id=resource_id)
