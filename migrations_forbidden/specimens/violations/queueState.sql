-- A run is over, and its queue entry goes on.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE run_queue SET status = 'running', finished_at = NULL WHERE run_id = (SELECT run_id FROM victim);
