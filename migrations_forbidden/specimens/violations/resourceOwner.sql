-- Two effects exchange their resources, and with them their logs.

CREATE TEMP TABLE swapped AS
SELECT effect_id, resource_id FROM effects WHERE effect_type = 'run.settle_queue' ORDER BY effect_id LIMIT 2;
CREATE TEMP TABLE victim AS
SELECT r.run_id FROM swapped AS s JOIN effects AS e ON e.effect_id = s.effect_id
JOIN runs AS r ON r.resource_id = e.source_resource_id;

UPDATE effects SET resource_id = 'nowhere' WHERE effect_id = (SELECT min(effect_id) FROM swapped);
UPDATE effects SET resource_id = (SELECT resource_id FROM swapped ORDER BY effect_id LIMIT 1)
WHERE effect_id = (SELECT max(effect_id) FROM swapped);
UPDATE effects SET resource_id = (SELECT resource_id FROM swapped ORDER BY effect_id DESC LIMIT 1)
WHERE effect_id = (SELECT min(effect_id) FROM swapped);
