-- A question is said to be a decision, and there is none.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'waiting' ORDER BY run_id LIMIT 1;

UPDATE interactive_requests SET kind = 'decision' WHERE run_id = (SELECT run_id FROM victim);
