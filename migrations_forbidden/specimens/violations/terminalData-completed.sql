-- A run that succeeded has an error.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE runs SET error_hash = (SELECT digest FROM value)
WHERE run_id = (SELECT run_id FROM victim);
