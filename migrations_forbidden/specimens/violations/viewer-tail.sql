-- The newest patches of a run's view are missing.

CREATE TEMP TABLE value AS
SELECT min(blob_hash) AS digest, max(blob_hash) AS other FROM blobs WHERE media_type = 'application/json';
CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO viewer_deltas (
    run_id, presentation_revision, delta_index, target_type, target_key, patch_hash, recorded_at)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 255)
SELECT v.run_id, r.n, 0, 'summary', '',
       (SELECT digest FROM value), 1
FROM viewer_runs AS v JOIN number AS r ON r.n BETWEEN 2 AND v.presentation_revision - 1
WHERE v.run_id = (SELECT run_id FROM victim);
