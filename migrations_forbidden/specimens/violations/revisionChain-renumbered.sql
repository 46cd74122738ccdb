-- The last event of a run is given a later revision.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE events SET resource_revision = resource_revision + 1
WHERE event_seq = (SELECT max(e.event_seq) FROM events AS e JOIN runs AS r ON r.resource_id = e.resource_id
                   WHERE r.run_id = (SELECT run_id FROM victim));
