-- A try was begun under a claim that is still to come.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0 ORDER BY r.run_id LIMIT 1;

UPDATE effect_attempts SET lease_generation = 100000 WHERE effect_id = (SELECT effect_id FROM victim);
