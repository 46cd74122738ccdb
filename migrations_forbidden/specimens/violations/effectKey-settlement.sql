-- A run without a place in the queue has a result to hand to it.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM run_queue WHERE run_id = (SELECT run_id FROM victim);
