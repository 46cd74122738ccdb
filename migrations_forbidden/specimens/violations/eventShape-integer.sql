-- A number in an event's payload is larger than any that a column holds.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE blobs
SET content = CAST(replace(CAST(content AS TEXT), '"visit_number":1', '"visit_number":99999999999999999999') AS BLOB)
WHERE blob_hash IN (
    SELECT payload_hash FROM events
    WHERE event_type = 'attempt.started'
      AND resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim)));
