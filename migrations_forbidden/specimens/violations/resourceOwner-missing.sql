-- An effect is deleted, and its resource stays.

DELETE FROM effects
WHERE effect_id = (SELECT effect_id FROM effects WHERE effect_type = 'run.settle_queue' ORDER BY effect_id LIMIT 1);
