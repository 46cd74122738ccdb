-- name: run_effects
-- Effects of one run in the given states, oldest first. What settles the queue is the engine's own.
SELECT e.effect_id
FROM runs AS r
CROSS JOIN effects AS e ON e.source_resource_id = r.resource_id
WHERE r.run_id = :run_id
  AND e.status IN (SELECT s.value FROM json_each(:statuses) AS s)
  AND NOT (e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id)
ORDER BY e.created_at, e.effect_id
LIMIT :items_max OFFSET :start

-- name: count_run_effects
-- How many effects that is.
SELECT count(*)
FROM runs AS r
CROSS JOIN effects AS e ON e.source_resource_id = r.resource_id
WHERE r.run_id = :run_id
  AND e.status IN (SELECT s.value FROM json_each(:statuses) AS s)
  AND NOT (e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id)

-- name: all_effects
-- Effects of all runs in the given states, oldest first.
SELECT e.effect_id
FROM effects AS e INDEXED BY effects_status
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status IN (SELECT s.value FROM json_each(:statuses) AS s)
  AND NOT (e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id)
ORDER BY e.created_at, e.effect_id
LIMIT :items_max OFFSET :start

-- name: count_all_effects
-- How many effects that is.
SELECT count(*)
FROM effects AS e INDEXED BY effects_status
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status IN (SELECT s.value FROM json_each(:statuses) AS s)
  AND NOT (e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id)

-- name: effects
-- Effects with what they are about and the error of the newest try.
SELECT e.effect_id, r.run_id, e.effect_type, e.status, e.attempt_count, e.payload_hash,
       coalesce(e.error_hash, t.error_hash), e.created_at, e.updated_at
FROM json_each(:effect_ids) AS asked
CROSS JOIN effects AS e ON e.effect_id = asked.value
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
LEFT JOIN effect_attempts AS t
    ON t.effect_id = e.effect_id AND t.attempt_number = e.attempt_count
ORDER BY asked.key
