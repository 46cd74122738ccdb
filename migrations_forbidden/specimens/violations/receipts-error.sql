-- An accepted command has an error.

CREATE TEMP TABLE victim AS
SELECT run_id FROM host_commands WHERE operation = 'run.cancel' AND outcome = 'accepted' ORDER BY run_id LIMIT 1;

UPDATE host_commands SET error_hash = (SELECT digest FROM value)
WHERE operation = 'run.cancel' AND run_id = (SELECT run_id FROM victim);
