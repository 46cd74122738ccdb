-- An effect has a later try than it counts.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0 ORDER BY r.run_id LIMIT 1;

UPDATE effect_attempts SET attempt_number = attempt_number + 1
WHERE effect_id = (SELECT effect_id FROM victim)
  AND attempt_number = (SELECT attempt_count FROM effects WHERE effect_id = (SELECT effect_id FROM victim));
