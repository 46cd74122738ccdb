-- A patch of a run's view is missing between others.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM viewer_deltas
WHERE run_id = (SELECT run_id FROM victim) AND presentation_revision = 3 AND delta_index = 1;
