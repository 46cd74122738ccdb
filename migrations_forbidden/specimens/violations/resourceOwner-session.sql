-- A row of session_segments belongs to a resource with another key.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('session-y', 'session', 'y', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('session-y', 0);
INSERT INTO session_segments (
    segment_id, run_id, session_id, resource_id, status, entry_digest, event_digest, created_at)
SELECT 'x', run_id, 's', 'session-y', 'recording', zeroblob(32), zeroblob(32), 1
FROM victim;
