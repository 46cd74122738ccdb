-- A queue entry that is over has no end.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE run_queue SET finished_at = NULL WHERE run_id = (SELECT run_id FROM victim);
