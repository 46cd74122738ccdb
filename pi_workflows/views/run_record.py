"""What a run did, step by step and node by node, in a form that two runs can be compared in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.rows import RunStatus
from pi_workflows.domain.run.state import NODE_OUTCOME

SQL: Final = load(__package__, "run_record.sql")


class RunRecord(NamedTuple):
    """What a run began with and what it came to; sizes in bytes."""

    run_id: str
    workflow_name: str
    definition_digest: bytes
    source_revision: str
    input_hash: bytes
    input_bytes: int
    launch_options_hash: bytes
    status: RunStatus
    output_hash: bytes | None
    output_bytes: int | None


class StepRecord(NamedTuple):
    """A settled attempt; the size of its output in bytes."""

    step_index: int
    node_id: str
    visit: int
    attempt_number: int
    status: str
    output_hash: bytes | None
    output_bytes: int | None
    settings_scope_id: str | None
    settings_change_number: int | None
    settings_hash: bytes | None

    @property
    def outcome(self) -> str:
        """How the attempt ended."""
        return NODE_OUTCOME[self.status]


class NodeTimes(NamedTuple):
    """How often a node was tried, how long it was active, and how long it waited for answers."""

    node_id: str
    attempts: int
    active_ms: int
    waiting_ms: int


def run_record(read: Read, run_id: str) -> RunRecord:
    """Return what a run began with and came to. Raises NotFound when there is none."""
    found = read.one(RunRecord, SQL["record_run"], run_id=run_id)
    if found is None:
        raise NotFound(f"There is no run {run_id}.", code="runMissing", field="runId")
    return found


def step_records(read: Read, run_id: str) -> Iterator[StepRecord]:
    """Yield the steps of a run in order, however many there are."""
    start = 0
    while True:
        rows = read.all(
            StepRecord, SQL["record_steps"], run_id=run_id, start=start, steps_max=PAGE_ITEMS_MAX
        )
        yield from rows
        if len(rows) < PAGE_ITEMS_MAX:
            return
        start = rows[-1].step_index + 1


def node_times(read: Read, run_id: str) -> dict[str, NodeTimes]:
    """Return for each node of a run that was begun how often it was tried, and for how long."""
    return {row.node_id: row for row in read.all(NodeTimes, SQL["record_times"], run_id=run_id)}
