-- An answer was taken, and the attempt that asked goes on.
-- also: steps

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

UPDATE node_attempts SET status = 'interrupted', finished_at = NULL
WHERE attempt_id = (SELECT attempt_id FROM interactive_requests WHERE request_id = (SELECT request_id FROM victim));
