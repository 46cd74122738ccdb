-- A run that has ended still asks its question.
-- also: pendingRequest

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'cancelled' ORDER BY run_id LIMIT 1;

UPDATE interactive_requests SET status = 'pending' WHERE request_id = (SELECT request_id FROM victim);
