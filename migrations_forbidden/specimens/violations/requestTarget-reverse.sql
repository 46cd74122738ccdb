-- A decision is asked by a question that is none.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

-- with: decision
UPDATE interactive_requests SET kind = 'checkpoint' WHERE request_id = (SELECT request_id FROM victim);
