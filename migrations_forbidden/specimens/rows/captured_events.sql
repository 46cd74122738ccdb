-- A capture with as many events as a checkpoint takes.

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('session-x', 'session', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('session-x', 0);
INSERT INTO session_segments (
    segment_id, run_id, session_id, resource_id, status, entry_count, event_count, entry_digest, event_digest,
    failure_hash, created_at, finished_at)
VALUES (
    'x', (SELECT run_id FROM victim),
    's', 'session-x', 'recording', 0, 256, zeroblob(32), zeroblob(32),
    NULL, 1, NULL);
INSERT INTO session_events (
    segment_id, run_id, event_seq, run_seq, event_type, payload_hash, presentation_revision, recorded_at)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 256)
SELECT 'x', (SELECT run_id FROM victim), n, n, 'turn', (SELECT digest FROM value), 1, 1 FROM number;
