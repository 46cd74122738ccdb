-- A value that an event names is no longer kept for it.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

DELETE FROM event_blobs
WHERE event_seq = (SELECT event_seq FROM events AS e JOIN runs AS r ON r.resource_id = e.resource_id
                   WHERE r.run_id = (SELECT run_id FROM victim) AND e.resource_revision = 1);
