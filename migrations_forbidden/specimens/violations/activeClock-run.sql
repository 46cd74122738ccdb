-- Time runs for a run that is not begun.

CREATE TEMP TABLE victim AS
SELECT a.run_id, a.attempt_id FROM attempt_active_intervals AS i JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
WHERE i.ended_at IS NULL ORDER BY a.run_id LIMIT 1;

UPDATE runs SET status = 'queued' WHERE run_id = (SELECT run_id FROM victim);
