-- An effect happened, and nothing has tried to make it happen.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0 AND e.effect_type <> 'run.settle_queue'
ORDER BY r.run_id LIMIT 1;

DELETE FROM effect_attempts WHERE effect_id = (SELECT effect_id FROM victim);
UPDATE effects SET attempt_count = 0 WHERE effect_id = (SELECT effect_id FROM victim);
