-- An accepted command has an error.

CREATE TEMP TABLE value AS
SELECT min(blob_hash) AS digest, max(blob_hash) AS other FROM blobs WHERE media_type = 'application/json';
CREATE TEMP TABLE victim AS
SELECT run_id FROM host_commands WHERE operation = 'run.cancel' AND outcome = 'accepted' ORDER BY run_id LIMIT 1;

UPDATE host_commands SET error_hash = (SELECT digest FROM value)
WHERE operation = 'run.cancel' AND run_id = (SELECT run_id FROM victim);
