-- The attempt that asks an open question is said to be over.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

UPDATE node_attempts SET status = 'completed', finished_at = updated_at
WHERE attempt_id = (SELECT attempt_id FROM interactive_requests WHERE request_id = (SELECT request_id FROM victim));
