-- An event in the middle of a run's log is deleted.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

CREATE TEMP TABLE lost AS
SELECT min(e.event_seq) AS event_seq FROM events AS e JOIN runs AS r ON r.resource_id = e.resource_id
WHERE r.run_id = (SELECT run_id FROM victim) AND e.event_type = 'attempt.started';
DELETE FROM event_blobs WHERE event_seq = (SELECT event_seq FROM lost);
DELETE FROM events WHERE event_seq = (SELECT event_seq FROM lost);
