-- An event's payload is deleted.
-- also: foreignKeys

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM blobs WHERE blob_hash = (
    SELECT payload_hash FROM events
    WHERE event_type = 'attempt.started'
      AND resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim))
    LIMIT 1);
