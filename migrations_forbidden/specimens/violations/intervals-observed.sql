-- An interval was closed later than it was last observed.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE attempt_active_intervals SET ended_at = ended_at + 1
WHERE attempt_id IN (SELECT attempt_id FROM node_attempts WHERE run_id = (SELECT run_id FROM victim));
