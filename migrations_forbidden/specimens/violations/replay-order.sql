-- Two events of a run are told the wrong way round, so that no row can come of them.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

CREATE TEMP TABLE told AS
SELECT e.event_seq, e.payload_hash, e.event_type FROM events AS e JOIN runs AS r ON r.resource_id = e.resource_id
WHERE r.run_id = (SELECT run_id FROM victim) AND e.event_type IN ('attempt.started', 'attempt.settled')
ORDER BY e.event_seq LIMIT 2;
UPDATE events SET event_type = 'attempt.settled', payload_hash = (SELECT payload_hash FROM told ORDER BY event_seq DESC)
WHERE event_seq = (SELECT min(event_seq) FROM told);
UPDATE events SET event_type = 'attempt.started', payload_hash = (SELECT payload_hash FROM told ORDER BY event_seq)
WHERE event_seq = (SELECT max(event_seq) FROM told);
