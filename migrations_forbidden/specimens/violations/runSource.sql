-- It is forgotten where the workflow of a run came from.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM run_sources WHERE run_id = (SELECT run_id FROM victim) AND mount_path = '';
