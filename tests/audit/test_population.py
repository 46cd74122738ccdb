"""The databases that audits are tried on hold every kind of run, and nothing that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.store.driver import connect
from tests.audit.population import RUNS_MIN, population
from tests.kernel.rebuilt import assert_rebuilds

# What has to be there at least once, told from the rows alone.
KINDS = {
    "a run that completed": "SELECT 1 FROM runs WHERE status = 'completed'",
    "a run that failed": "SELECT 1 FROM runs WHERE status = 'failed'",
    "a run that timed out": "SELECT 1 FROM runs WHERE status = 'timed_out'",
    "a question that is open": "SELECT 1 FROM interactive_requests WHERE status = 'pending'",
    "a question that was asked again": "SELECT 1 FROM interactive_requests WHERE revision > 1",
    "an answer that a run took": "SELECT 1 FROM interactive_requests AS q JOIN runs AS r"
    " ON r.run_id = q.run_id WHERE q.consumed_at IS NOT NULL AND r.status = 'completed'",
    "a question that was cancelled": "SELECT 1 FROM interactive_requests"
    " WHERE status = 'cancelled'",
    "a pause between nodes": "SELECT 1 FROM runs AS r JOIN run_queue AS q ON q.run_id = r.run_id"
    " WHERE r.paused = 1 AND q.status = 'parked'",
    "a pause during an effect": "SELECT 1 FROM runs AS r JOIN effects AS e"
    " ON e.source_resource_id = r.resource_id WHERE r.paused = 1 AND e.status = 'applying'",
    "a run cancelled before it began": "SELECT 1 FROM runs AS r JOIN run_queue AS q"
    " ON q.run_id = r.run_id WHERE r.status = 'cancelled' AND q.started_at IS NULL",
    "a run cancelled at work": "SELECT 1 FROM node_attempts"
    " WHERE status = 'cancelled' AND node_type = 'compute'",
    "a run cancelled while it waited": "SELECT 1 FROM node_attempts"
    " WHERE status = 'cancelled' AND node_type = 'checkpoint'",
    "a restart of a restart": "SELECT 1 FROM runs WHERE restart_number = 2",
    "a lost runner": "SELECT 1 FROM events WHERE event_type = 'run.requeued'",
    "a lost server": "SELECT 1 FROM events WHERE event_type = 'lease.released'",
    "no progress": "SELECT 1 FROM run_queue WHERE error_code = 'runnerNoProgress'",
    "a changed source": "SELECT 1 FROM run_queue WHERE error_code = 'workflowSourceChanged'",
    "a run that an effect holds up": "SELECT 1 FROM run_queue WHERE error_code = 'effectAmbiguous'",
    "a retry with a delay": "SELECT 1 FROM events AS e JOIN blobs AS b"
    " ON b.blob_hash = e.payload_hash WHERE e.event_type = 'run.requeued'"
    " AND b.content ->> '$.reason' = 'retry'",
    "a way behind a failure": "SELECT 1 FROM node_attempts AS a JOIN node_attempts AS b"
    " ON b.run_id = a.run_id WHERE a.status = 'failed' AND b.node_id = 'late'",
    "a node of two visits": "SELECT 1 FROM node_attempts WHERE visit_number = 2",
    "a try of a visit": "SELECT 1 FROM node_attempts WHERE attempt_number > visit_number",
    "progress that replaced other": "SELECT 1 FROM workflow_updates WHERE update_seq > 1",
    "an effect applied": "SELECT 1 FROM effect_attempts WHERE outcome = 'applied'",
    "an effect rejected": "SELECT 1 FROM effect_attempts WHERE outcome = 'rejected'",
    "a try that nobody knows of": "SELECT 1 FROM effect_attempts WHERE outcome = 'ambiguous'",
    "a try that was interrupted": "SELECT 1 FROM effect_attempts WHERE outcome = 'interrupted'",
    "an effect dropped": "SELECT 1 FROM effects WHERE status = 'cancelled'",
    "three verdicts": "SELECT 1 FROM host_commands WHERE operation = 'effect.resolve'"
    " GROUP BY operation HAVING count(*) >= 3",
    "a command refused": "SELECT 1 FROM host_commands WHERE outcome = 'rejected'",
    "a message refused": "SELECT 1 FROM worker_messages WHERE outcome = 'rejected'",
    "runners of two servers": "SELECT 1 FROM run_workers GROUP BY 'one'"
    " HAVING count(DISTINCT host_epoch) = 2",
    "an interactive run that goes on": "SELECT 1 FROM run_queue"
    " WHERE origin_session_id IS NOT NULL AND finished_at IS NULL",
    "a step that took three tries": "SELECT 1 FROM node_attempts WHERE node_type = 'agent'"
    " AND attempt_number = 3 AND status = 'completed'",
    "a step that nobody answered": "SELECT 1 FROM events WHERE event_type = 'request.cancelled'",
    "a step whose time ran out": "SELECT 1 FROM events"
    " WHERE event_type = 'run.interaction_timeout_started'",
    "an answer that was refused and corrected": "SELECT 1 FROM interactive_submissions AS a"
    " JOIN interactive_submissions AS b ON b.request_id = a.request_id"
    " WHERE a.outcome = 'rejected' AND b.outcome = 'accepted'",
    "an answer that is being judged": "SELECT 1 FROM interactive_submissions"
    " WHERE outcome = 'validating'",
    "two reminders": "SELECT 1 FROM events AS e JOIN blobs AS b ON b.blob_hash = e.payload_hash"
    " WHERE e.event_type = 'message.created' AND b.content ->> '$.reason' = 'reminder'"
    " GROUP BY b.content ->> '$.message.source_id' HAVING count(*) = 2",
    "each kind of end of a turn": "SELECT 1 FROM workflow_turns WHERE stop_reason IS NOT NULL"
    " GROUP BY 'one' HAVING count(DISTINCT stop_reason) = 4",
    "a turn that is open": "SELECT 1 FROM workflow_turns WHERE state = 'started'",
    "time of a session that is running": "SELECT 1 FROM attempt_active_intervals AS i"
    " JOIN node_attempts AS a ON a.attempt_id = i.attempt_id"
    " WHERE i.ended_at IS NULL AND a.status = 'waiting' AND i.elapsed_ms > 0",
    "a step that was told again": "SELECT 1 FROM workflow_messages WHERE kind = 'step'"
    " GROUP BY source_id HAVING count(*) = 3",
    "a message that nobody needs any more": "SELECT 1 FROM workflow_messages"
    " WHERE status = 'cancelled'",
    "a notification": "SELECT 1 FROM workflow_messages WHERE kind = 'notification'",
    "an end that was told": "SELECT 1 FROM workflow_messages AS m JOIN workflow_turns AS t"
    " ON t.workflow_message_id = m.workflow_message_id WHERE m.kind = 'terminal'",
    "an end that nothing follows": "SELECT 1 FROM workflow_messages"
    " WHERE recovery_stop IS NOT NULL",
    "follow-ups of every fate": "SELECT 1 FROM workflow_follow_ups"
    " GROUP BY 'one' HAVING count(DISTINCT status) = 3",
    "two projects": "SELECT 1 FROM projects GROUP BY 'one' HAVING count(*) = 2",
    "many definitions": "SELECT 1 FROM workflow_definitions GROUP BY 'one' HAVING count(*) > 4",
    "a mount": "SELECT 1 FROM run_sources WHERE mount_path <> ''",
    "a title": "SELECT 1 FROM runs WHERE title IS NOT NULL",
}


def missing(file: Path) -> list[str]:
    """Return the kinds that a database does not have."""
    connection = connect(str(file))
    try:
        return [
            kind for kind, statement in KINDS.items() if not list(connection.execute(statement))
        ]
    finally:
        connection.close()


def test_a_few_runs_hold_every_kind(tmp_path: Path) -> None:
    """Nothing is wrong with them, and what they say depends on the seed alone."""
    digests: list[list[object]] = []
    for directory in (tmp_path / "one", tmp_path / "two"):
        made = population(directory)
        assert_rebuilds(made.store)
        digests.append([row[9] for row in made.bench.dump("events")])
        assert len(made.kinds) == len(made.bench.dump("runs")) == RUNS_MIN
        assert missing(made.close()) == []
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_two_hundred_runs_hold_every_kind(tmp_path: Path) -> None:
    """Many lives go on side by side, some with values that fill overflow pages."""
    made = population(tmp_path, 200)
    assert_rebuilds(made.store)
    assert len(made.kinds) == len(made.bench.dump("runs")) == 200
    longest = max(len(bytes(row[3])) for row in made.bench.dump("blobs"))  # type: ignore[call-overload] # a blob's content
    assert 64 * 1024 < longest < 256 * 1024
    file = made.close()
    assert missing(file) == []
    assert file.stat().st_size < 16 * 1024**2
