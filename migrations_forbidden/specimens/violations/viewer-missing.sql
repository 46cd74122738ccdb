-- The cursor of a run's view is deleted, and its patches with it.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM viewer_runs WHERE run_id = (SELECT run_id FROM victim);
DELETE FROM viewer_deltas WHERE run_id = (SELECT run_id FROM victim);
