-- An effect is applied, and its last try says that it was refused.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0
  AND NOT EXISTS (SELECT 1 FROM events AS v
                  WHERE v.resource_id = e.resource_id AND v.event_type = 'effect.recovered')
ORDER BY r.run_id LIMIT 1;

UPDATE effect_attempts SET outcome = 'rejected' WHERE effect_id = (SELECT effect_id FROM victim);
