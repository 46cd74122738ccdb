-- The second patch of a revision is there, and not the first.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE viewer_deltas SET delta_index = delta_index + 100
WHERE run_id = (SELECT run_id FROM victim) AND presentation_revision = 3;
