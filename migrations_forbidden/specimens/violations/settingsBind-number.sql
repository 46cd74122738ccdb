-- An attempt has the number of a change, and no settings.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE node_attempts SET settings_change_number = 1 WHERE run_id = (SELECT run_id FROM victim);
