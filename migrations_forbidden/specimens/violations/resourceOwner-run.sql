-- A run's resource is said to be another run's.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE resources SET aggregate_key = 'run-none'
WHERE resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
