-- A message tells the end of a run that goes on.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'waiting' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
-- with: message
