-- An attempt is said to have answered with an entry of another run.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('session-x', 'session', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('session-x', 0);
INSERT INTO session_segments (
    segment_id, run_id, session_id, resource_id, status, entry_count, event_count, entry_digest, event_digest,
    failure_hash, created_at, finished_at)
VALUES (
    'x', (SELECT run_id FROM first_run WHERE status = 'failed'),
    's', 'session-x', 'recording', 1, 0, zeroblob(32), zeroblob(32),
    NULL, 1, NULL);
INSERT INTO session_entries (
    segment_id, run_id, entry_seq, run_seq, entry_id, entry_hash, presentation_revision, recorded_at)
VALUES (
    'x', (SELECT run_id FROM first_run WHERE status = 'failed'),
    1, 1, 'entry-1',
    (SELECT digest FROM value), 1, 1);
INSERT INTO attempt_entries (attempt_id, role, segment_id, entry_id)
SELECT attempt_id, 'response', 'x', 'entry-1' FROM node_attempts
WHERE run_id = (SELECT run_id FROM victim) ORDER BY attempt_id LIMIT 1;
