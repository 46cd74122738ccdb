-- A question is put to another session.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'waiting' ORDER BY run_id LIMIT 1;

UPDATE interactive_requests SET target_session_id = 'session-other' WHERE run_id = (SELECT run_id FROM victim);
