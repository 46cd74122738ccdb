-- The input of a run is said to be text.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE blobs SET media_type = 'text/plain'
WHERE blob_hash = (SELECT input_hash FROM runs WHERE run_id = (SELECT run_id FROM victim));
