-- A run that restarts nothing is said to be of another run's tree.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE runs SET root_run_id = (SELECT run_id FROM runs WHERE status = 'failed' ORDER BY run_id LIMIT 1)
WHERE run_id = (SELECT run_id FROM victim);
