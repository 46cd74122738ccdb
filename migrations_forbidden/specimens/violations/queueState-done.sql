-- A queue entry is over, and its run goes on, whatever settlement is to come.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'waiting' ORDER BY run_id LIMIT 1;

UPDATE run_queue SET status = 'done', finished_at = 1 WHERE run_id = (SELECT run_id FROM victim);
