-- A receipt is said to be older than it is.

CREATE TEMP TABLE victim AS
SELECT run_id FROM host_commands WHERE operation = 'run.cancel' AND run_id IS NOT NULL ORDER BY run_id LIMIT 1;

UPDATE host_commands SET created_at = created_at - 1
WHERE operation = 'run.cancel' AND run_id = (SELECT run_id FROM victim);
