-- A run's title is changed by hand.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE runs SET title = 'forged' WHERE run_id = (SELECT run_id FROM victim);
