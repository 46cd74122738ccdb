-- The events say that a second interval was opened before the first was closed.

CREATE TEMP TABLE victim AS
SELECT a.run_id, a.attempt_id, e.payload_hash
FROM workflow_updates AS u
JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
JOIN attempt_active_intervals AS i ON i.attempt_id = a.attempt_id
JOIN runs AS r ON r.run_id = a.run_id
JOIN events AS e ON e.resource_id = r.resource_id AND e.event_type = 'update.recorded'
JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE i.ended_at IS NOT NULL AND json_extract(CAST(b.content AS TEXT), '$.update.update_id') = u.update_id
ORDER BY a.run_id, e.event_seq LIMIT 1;

INSERT INTO attempt_active_intervals (attempt_id, interval_number, started_at, observed_at, ended_at, elapsed_ms)
SELECT attempt_id, 2, 1, 1, 1, 0 FROM victim;
UPDATE blobs
SET content = CAST(json_set(
    CAST(content AS TEXT), '$.interval',
    json_object('attempt_id', (SELECT attempt_id FROM victim), 'interval_number', 2, 'started_at', 1)) AS BLOB)
WHERE blob_hash = (SELECT payload_hash FROM victim);
