-- A run is said to have taken a step of another run.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO run_steps (run_id, step_index, attempt_id)
SELECT (SELECT run_id FROM victim),
       (SELECT max(step_index) + 1 FROM run_steps WHERE run_id = (SELECT run_id FROM victim)),
       (SELECT attempt_id FROM run_steps WHERE run_id <> (SELECT run_id FROM victim) ORDER BY attempt_id LIMIT 1);
