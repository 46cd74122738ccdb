-- An effect is said to be the one of another key.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0 ORDER BY r.run_id LIMIT 1;

UPDATE effects SET idempotency_key = 'forged' WHERE effect_id = (SELECT effect_id FROM victim);
