-- A capture that says it has one entry.

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('session-x', 'session', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('session-x', 0);
INSERT INTO session_segments (
    segment_id, run_id, session_id, resource_id, status, entry_count, event_count, entry_digest, event_digest,
    failure_hash, created_at, finished_at)
VALUES (
    'x', (SELECT run_id FROM victim),
    's', 'session-x', 'recording', 1, 0, zeroblob(32), zeroblob(32),
    NULL, 1, NULL);
