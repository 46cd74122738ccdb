-- Time runs for an attempt that lost its runner.

CREATE TEMP TABLE victim AS
SELECT a.run_id, a.attempt_id FROM attempt_active_intervals AS i JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
WHERE i.ended_at IS NULL ORDER BY a.run_id LIMIT 1;

UPDATE node_attempts SET status = 'interrupted' WHERE attempt_id = (SELECT attempt_id FROM victim);
