-- The log for people. Every filter may be NULL, which lets everything through.

-- name: slice
-- Events in their order. The unary plus keeps the planner in that order: it tests each event of the range instead of
-- sorting all of the resources' once a slice.
SELECT
    e.event_seq, e.recorded_at, e.event_type, e.actor_type, e.resource_id, e.resource_revision,
    r.resource_type, r.aggregate_key, b.content
FROM events AS e
LEFT JOIN resources AS r ON r.resource_id = e.resource_id
LEFT JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.event_seq >= :from_seq AND e.event_seq <= :to_seq
    AND (:types IS NULL OR +e.event_type IN (SELECT value FROM json_each(:types)))
    AND (:resources IS NULL OR +e.resource_id IN (SELECT value FROM json_each(:resources)))
ORDER BY e.event_seq
LIMIT :slice;

-- name: attempt_node
SELECT node_id FROM node_attempts WHERE attempt_id = :attempt_id;

-- name: effect
-- What an effect is about: its type, and the payload that names its node. What settles the queue is the engine's own, and
-- no node's.
SELECT
    e.effect_type,
    CASE
        WHEN e.effect_type = 'run.settle_queue' AND e.idempotency_key = r.run_id THEN NULL
        ELSE e.payload_hash
    END
FROM effects AS e
LEFT JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.effect_id = :effect_id;

-- name: neighbours
-- The runs beside one in the order of their IDs: what tells it from them tells it from all.
SELECT
    (SELECT max(run_id) FROM runs WHERE run_id < :run_id),
    (SELECT min(run_id) FROM runs WHERE run_id > :run_id);
