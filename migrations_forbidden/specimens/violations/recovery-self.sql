-- A run recovers from its own end.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'failed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
-- with: message
UPDATE runs
SET recovery_root_run_id = (SELECT run_id FROM first_run WHERE status = 'completed'),
    recovery_source_message_id = 'first'
WHERE run_id = (SELECT run_id FROM victim);
