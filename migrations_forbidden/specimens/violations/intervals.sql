-- An interval follows one that is still open.

CREATE TEMP TABLE victim AS
SELECT a.run_id, a.attempt_id FROM attempt_active_intervals AS i JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
WHERE i.ended_at IS NULL ORDER BY a.run_id LIMIT 1;

INSERT INTO attempt_active_intervals (attempt_id, interval_number, started_at, observed_at, ended_at, elapsed_ms)
SELECT attempt_id, max(interval_number) + 1, 1, 1, 1, 0 FROM attempt_active_intervals
WHERE attempt_id = (SELECT attempt_id FROM victim);
