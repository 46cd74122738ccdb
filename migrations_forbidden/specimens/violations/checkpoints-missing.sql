-- A run has no checkpoint at its 256th captured event.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

-- with: captured_events
