-- An attempt has settings of no scope.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE node_attempts SET settings_hash = (SELECT digest FROM value)
WHERE run_id = (SELECT run_id FROM victim);
