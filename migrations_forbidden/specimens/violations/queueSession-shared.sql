-- A session has two interactive runs that go on; the entry of one is said to be over.
-- also: queueState

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'waiting' ORDER BY run_id LIMIT 1;

CREATE TEMP TABLE other AS
SELECT r.run_id FROM runs AS r JOIN run_bindings AS b ON b.run_id = r.run_id
WHERE r.status = 'running' AND b.execution_mode = 'headless' ORDER BY r.run_id LIMIT 1;
UPDATE run_bindings
SET execution_mode = 'interactive',
    origin_session_id = (SELECT origin_session_id FROM run_bindings WHERE run_id = (SELECT run_id FROM victim))
WHERE run_id = (SELECT run_id FROM other);
UPDATE run_queue
SET status = 'done', finished_at = 1,
    origin_session_id = (SELECT origin_session_id FROM run_bindings WHERE run_id = (SELECT run_id FROM victim))
WHERE run_id = (SELECT run_id FROM other);
