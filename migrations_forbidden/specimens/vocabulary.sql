-- What every specimen may use: two values that are stored, and the first run of each status.

CREATE TEMP TABLE value AS
SELECT min(blob_hash) AS digest, max(blob_hash) AS other FROM blobs WHERE media_type = 'application/json';
CREATE TEMP TABLE first_run AS
SELECT status, min(run_id) AS run_id FROM runs WHERE parent_run_id IS NULL GROUP BY status;
