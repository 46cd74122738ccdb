-- A patch of a run's view is missing between others.

CREATE TEMP TABLE value AS
SELECT min(blob_hash) AS digest, max(blob_hash) AS other FROM blobs WHERE media_type = 'application/json';
CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO viewer_deltas (
    run_id, presentation_revision, delta_index, target_type, target_key, patch_hash, recorded_at)
SELECT run_id, value, 0, 'summary', '', (SELECT digest FROM value), 1
FROM viewer_runs, json_each('[2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]')
WHERE run_id = (SELECT run_id FROM victim) AND value <= presentation_revision;
