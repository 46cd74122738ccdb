-- A try of an effect that is over goes on.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0 ORDER BY r.run_id LIMIT 1;

UPDATE effect_attempts SET finished_at = NULL WHERE effect_id = (SELECT effect_id FROM victim);
