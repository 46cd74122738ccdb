-- A question is open for a run that is not begun.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

UPDATE runs SET status = 'queued' WHERE run_id = (SELECT run_id FROM victim);
