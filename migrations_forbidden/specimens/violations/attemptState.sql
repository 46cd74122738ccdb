-- An attempt that is settled has no end.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE node_attempts SET finished_at = NULL
WHERE run_id = (SELECT run_id FROM victim) AND status = 'completed';
