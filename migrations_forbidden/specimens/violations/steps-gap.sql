-- A step of a run is skipped.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE run_steps SET step_index = step_index + 1
WHERE run_id = (SELECT run_id FROM victim)
  AND step_index = (SELECT max(step_index) FROM run_steps WHERE run_id = (SELECT run_id FROM victim));
