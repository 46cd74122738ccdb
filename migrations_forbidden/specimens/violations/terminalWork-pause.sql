-- A run that has ended is paused.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE runs SET paused = 1 WHERE run_id = (SELECT run_id FROM victim);
