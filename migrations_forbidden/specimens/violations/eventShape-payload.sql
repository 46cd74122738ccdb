-- An event's payload is made that of another one.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE events SET payload_hash = (SELECT payload_hash FROM events WHERE event_type = 'run.queued' LIMIT 1)
WHERE event_type = 'attempt.started'
  AND resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
