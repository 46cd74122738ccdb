-- An event of an effect stands on a run.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE events SET event_type = 'effect.cancelled'
WHERE event_type = 'attempt.started'
  AND resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
