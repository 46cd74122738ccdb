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

-- name: named_effects
-- Effects whose ID begins so, by ID.
SELECT e.effect_id
FROM effects AS e
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.effect_id >= :first AND e.effect_id < :after
  AND (:status IS NULL OR e.status = :status)
  AND (:run_id IS NULL OR r.run_id = :run_id)
  AND NOT (e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id)
ORDER BY e.effect_id
LIMIT :items_max OFFSET :start

-- name: count_named_effects
-- How many effects that is.
SELECT count(*)
FROM effects AS e
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.effect_id >= :first AND e.effect_id < :after
  AND (:status IS NULL OR e.status = :status)
  AND (:run_id IS NULL OR r.run_id = :run_id)
  AND NOT (e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id)

-- name: tries
-- The newest tries of effects, in the order of the question.
SELECT t.effect_id, t.attempt_number, t.started_at, t.finished_at, t.outcome, t.result_hash, t.error_hash
FROM json_each(:effect_ids) AS asked
CROSS JOIN effects AS e ON e.effect_id = asked.value
CROSS JOIN effect_attempts AS t
    ON t.effect_id = e.effect_id AND t.attempt_number > e.attempt_count - :tries_max
ORDER BY asked.key, t.attempt_number

-- name: decisions
-- What was decided about effects, among the newest of their events, the newest first.
SELECT e.effect_id, v.recorded_at, v.actor_type, v.payload_hash
FROM json_each(:effect_ids) AS asked
CROSS JOIN effects AS e ON e.effect_id = asked.value
CROSS JOIN resources AS s ON s.resource_id = e.resource_id
CROSS JOIN events AS v
    ON v.resource_id = e.resource_id AND v.resource_revision > s.revision - :events_max
WHERE v.event_type = 'effect.recovered'
ORDER BY asked.key, v.resource_revision DESC

-- name: progress
-- What the newest attempt of an effect's visit published last.
SELECT u.data_hash
FROM workflow_updates AS u
WHERE u.attempt_id = (
    SELECT a.attempt_id FROM node_attempts AS a
    WHERE a.run_id = :run_id AND a.node_id = :node_path AND a.visit_number = :visit
    ORDER BY a.attempt_number DESC LIMIT 1)
ORDER BY u.update_seq DESC
LIMIT 1

-- name: effects
-- Effects with their run, what they are about and the error of the newest try.
SELECT e.effect_id, r.run_id, r.status, r.paused, e.effect_type, e.status, e.attempt_count, e.next_attempt_at,
       e.payload_hash, e.result_hash, coalesce(e.error_hash, t.error_hash), e.created_at, e.updated_at
FROM json_each(:effect_ids) AS asked
CROSS JOIN effects AS e ON e.effect_id = asked.value
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
LEFT JOIN effect_attempts AS t
    ON t.effect_id = e.effect_id AND t.attempt_number = e.attempt_count
ORDER BY asked.key
