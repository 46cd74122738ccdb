-- A restart is counted twice.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs ORDER BY restart_number DESC, run_id LIMIT 1;

UPDATE runs SET restart_number = restart_number + 1 WHERE run_id = (SELECT run_id FROM victim);
