-- An interactive run no longer reserves its session.

CREATE TEMP TABLE victim AS
SELECT run_id FROM run_bindings WHERE execution_mode = 'interactive' ORDER BY run_id LIMIT 1;

UPDATE run_queue SET origin_session_id = NULL WHERE run_id = (SELECT run_id FROM victim);
