-- The newest patches of a run's view are missing.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM viewer_deltas
WHERE run_id = (SELECT run_id FROM victim)
  AND presentation_revision = (
      SELECT presentation_revision FROM viewer_runs WHERE run_id = (SELECT run_id FROM victim));
