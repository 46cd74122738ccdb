-- A step names an attempt that does not exist.

CREATE TEMP TABLE victim AS
SELECT run_id FROM run_steps WHERE 1 ORDER BY run_id LIMIT 1;

UPDATE run_steps SET attempt_id = 'attempt-none'
WHERE run_id = (SELECT run_id FROM victim) AND step_index = 0;
