-- An effect has a try that it does not count.

CREATE TEMP TABLE victim AS
SELECT r.run_id, e.effect_id FROM effects AS e JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'applied' AND e.attempt_count > 0 ORDER BY r.run_id LIMIT 1;

INSERT INTO effect_attempts (effect_id, attempt_number, owner_id, lease_generation, started_at, finished_at, outcome)
SELECT effect_id, attempt_count + 1, 'forged', 1, 1, 1, 'applied' FROM effects
WHERE effect_id = (SELECT effect_id FROM victim);
