-- An event's payload lacks what every event of its type has.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE blobs SET content = CAST(replace(CAST(content AS TEXT), '"interval":', '"intermit":') AS BLOB)
WHERE blob_hash IN (
    SELECT payload_hash FROM events
    WHERE event_type = 'attempt.started'
      AND resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim)));
