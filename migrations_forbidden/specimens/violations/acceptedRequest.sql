-- The answer that settled a question is said to have been refused.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

UPDATE interactive_submissions SET outcome = 'rejected'
WHERE request_id = (SELECT request_id FROM victim) AND outcome = 'accepted';
