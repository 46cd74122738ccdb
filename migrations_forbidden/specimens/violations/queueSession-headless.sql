-- A headless run reserves a session.

CREATE TEMP TABLE victim AS
SELECT run_id FROM run_bindings WHERE execution_mode = 'headless' ORDER BY run_id LIMIT 1;

UPDATE run_queue SET origin_session_id = 'session-forged' WHERE run_id = (SELECT run_id FROM victim);
