-- The first revision of a run's view, which comes whole, has a patch.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO viewer_deltas
SELECT run_id, 1, delta_index, target_type, target_key, patch_hash, recorded_at FROM viewer_deltas
WHERE run_id = (SELECT run_id FROM victim) AND presentation_revision = 2;
