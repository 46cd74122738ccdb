-- The question of a waiting run is deleted.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'waiting' ORDER BY run_id LIMIT 1;

DELETE FROM interactive_requests WHERE run_id = (SELECT run_id FROM victim);
