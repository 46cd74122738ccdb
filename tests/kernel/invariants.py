"""What holds after every command, and what a command may never change: told without the kernel."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from pi_workflows.base.sql import Statement, plain
from pi_workflows.kernel.order import Answer
from pi_workflows.store.snapshot import Snapshot

ENDED: Final = ("completed", "failed", "timed_out", "cancelled")
_CLAIMED: Final = ("starting", "running")

# Each with the columns that never change once the row stands in the way its WHERE says.
_LASTING: Final = {
    "runs that ended": Statement(
        "ended_runs",
        "SELECT run_id, status, final_output_hash, error_hash, finished_at FROM runs"
        " WHERE finished_at IS NOT NULL",
    ),
    "queue entries that are over": Statement(
        "over", "SELECT run_id, status, finished_at, error_hash FROM run_queue"
        " WHERE finished_at IS NOT NULL",
    ),
    "attempts that settled": Statement(
        "settled", "SELECT attempt_id, status, output_hash, error_hash, receipt_hash, finished_at"
        " FROM node_attempts WHERE finished_at IS NOT NULL",
    ),
    "how attempts began": Statement(
        "begun", "SELECT attempt_id, node_id, visit_number, attempt_number, started_at, timeout_ms"
        " FROM node_attempts",
    ),
    "intervals that ended": Statement(
        "intervals", "SELECT attempt_id, interval_number, started_at, ended_at, elapsed_ms"
        " FROM attempt_active_intervals WHERE ended_at IS NOT NULL",
    ),
    "steps": Statement("steps", "SELECT run_id, step_index, attempt_id FROM run_steps"),
    "answers that won": Statement(
        "answers", "SELECT request_id, accepted_submission_id, settled_at FROM interactive_requests"
        " WHERE status = 'settled'",
    ),
    "effects that were applied or dropped": Statement(
        "effects", "SELECT effect_id, status, result_hash, settled_at FROM effects"
        " WHERE status IN ('applied', 'cancelled')",
    ),
    "tries that ended": Statement(
        "tries", "SELECT effect_id, attempt_number, outcome, result_hash, error_hash, finished_at"
        " FROM effect_attempts WHERE finished_at IS NOT NULL",
    ),
    "events": Statement("events", "SELECT event_seq, event_digest FROM events"),
    "client receipts": Statement("client", "SELECT request_id, row_digest FROM host_commands"),
    "runner receipts": Statement(
        "worker", "SELECT worker_epoch, message_id, row_digest FROM worker_messages"
    ),
}  # fmt: skip

_STANDING: Final = Statement(
    "standing",
    "SELECT r.run_id, r.status, r.paused, q.status, q.error_code, l.owner_type IS NOT NULL,"
    " (SELECT a.status FROM node_attempts AS a WHERE a.run_id = r.run_id"
    "  AND a.status IN ('pending', 'running', 'waiting')),"
    " (SELECT i.status FROM interactive_requests AS i WHERE i.run_id = r.run_id"
    "  AND (i.status = 'pending' OR i.status = 'settled' AND i.consumed_at IS NULL)),"
    " (SELECT count(*) FROM effects AS e WHERE e.source_resource_id = r.resource_id"
    "  AND e.status = 'pending'),"
    " (SELECT count(*) FROM effects AS e WHERE e.source_resource_id = r.resource_id"
    "  AND e.status = 'applying'),"
    " (SELECT count(*) FROM effects AS e WHERE e.source_resource_id = r.resource_id"
    "  AND e.status = 'ambiguous'),"
    " (SELECT count(*) FROM effects AS e JOIN leases AS x ON x.resource_id = e.resource_id"
    "  WHERE e.source_resource_id = r.resource_id AND x.owner_type IS NOT NULL)"
    " FROM runs AS r JOIN run_queue AS q ON q.run_id = r.run_id"
    " JOIN leases AS l ON l.resource_id = r.resource_id",
)


class Standing(NamedTuple):
    """How one run stands: its own columns, its open attempt and question, and its effects."""

    run_id: str
    status: str
    paused: int
    queue: str
    error_code: str | None
    is_claimed: int
    attempt: str | None
    request: str | None
    pending: int
    applying: int
    ambiguous: int
    effect_claims: int

    def faults(self) -> list[str]:
        """Return the rules of a run's lifecycle that it breaks (engine contract, section 2)."""
        ended = self.status in ENDED
        rules = {
            "a claim stands exactly while a runner may work":
                bool(self.is_claimed) == (self.queue in _CLAIMED),
            "a run that ended keeps nothing":
                not ended or not (self.is_claimed or self.attempt or self.request == "pending"
                                  or self.pending or self.applying or self.paused),
            "a paused run is parked, or lets a manual effect end":
                not self.paused or self.queue == "parked" or (self.is_claimed and self.applying),
            "a waiting run has an attempt that waits":
                self.status != "waiting" or self.attempt == "waiting",
            "an open question is parked in a waiting run":
                self.request != "pending" or (self.status, self.queue) == ("waiting", "parked"),
            "an attempt runs under a claim":
                self.attempt != "running" or (self.is_claimed and self.status == "running"),
            "an effect applies under a claim of its own and its run's":
                self.applying == self.effect_claims <= self.is_claimed,
            "a doubtful effect parks its run":
                ended or not self.ambiguous
                or (self.queue, self.error_code) == ("parked", "effectAmbiguous"),
            "what is parked without a reason is paused or waits":
                self.queue != "parked" or self.error_code is not None or bool(self.paused)
                or self.status == "waiting",
            "only what is parked or failed has a reason":
                self.error_code is None or self.queue in ("parked", "failed"),
            "one thing at a time": self.pending + self.applying + self.ambiguous <= 1,
        }  # fmt: skip
        return [rule for rule, holds in rules.items() if not holds]


def faults(read: Snapshot) -> list[tuple[Standing, list[str]]]:
    """Return the runs that stand as no run may, with the rules that they break."""
    standing = read.all(Standing, _STANDING)
    return [(run, broken) for run in standing if (broken := run.faults())]


def lasting(read: Snapshot) -> dict[str, set[tuple[object, ...]]]:
    """Return everything that may never change or go again."""
    return {name: set(read.each(plain, statement)) for name, statement in _LASTING.items()}


def forgotten(
    before: dict[str, set[tuple[object, ...]]], after: dict[str, set[tuple[object, ...]]]
) -> dict[str, set[tuple[object, ...]]]:
    """Return what should have lasted and is gone."""
    return {name: gone for name, rows in before.items() if (gone := rows - after[name])}


def doubled(answer: Answer) -> dict[tuple[str, str], int]:
    """Return the resources that one command gave more than one event, by command."""
    given = Counter(
        (event.fact.command.id, event.resource_id)
        for event in answer.events
        if event.fact.command is not None
    )
    return {key: count for key, count in given.items() if count > 1}
