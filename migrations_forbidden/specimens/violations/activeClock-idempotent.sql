-- Time runs in a pause that waits for an effect which may be repeated.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.payload_hash
FROM attempt_active_intervals AS i
JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
JOIN runs AS r ON r.run_id = a.run_id
JOIN effects AS e ON e.source_resource_id = r.resource_id
WHERE i.ended_at IS NULL AND r.paused = 1 AND e.status = 'applying' LIMIT 1;

UPDATE blobs SET content = CAST(replace(CAST(content AS TEXT), '"manual"', '"idempotent"') AS BLOB)
WHERE blob_hash = (SELECT payload_hash FROM victim);
