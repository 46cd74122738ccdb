-- The oldest patches of a run's view are said to be gone.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE viewer_runs SET retained_from_revision = 2 WHERE run_id = (SELECT run_id FROM victim);
