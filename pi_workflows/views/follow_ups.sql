-- name: total
-- How many follow-ups a run has: they are numbered.
SELECT coalesce(max(order_number), 0) FROM workflow_follow_ups WHERE run_id = :run_id

-- name: follow_ups
-- A range of them with their prompts, and what became of their messages.
SELECT f.follow_up_id, f.order_number, f.actor_type, f.status, f.created_at, f.updated_at,
       (SELECT m.status FROM workflow_messages AS m
        WHERE m.kind = 'followUp' AND m.source_id = f.follow_up_id ORDER BY m.order_number DESC LIMIT 1),
       f.prompt_hash, p.media_type, p.byte_length,
       CASE WHEN p.byte_length <= :carried_bytes THEN p.content END,
       f.reason_hash, r.media_type, r.byte_length, r.content
FROM workflow_follow_ups AS f
CROSS JOIN blobs AS p ON p.blob_hash = f.prompt_hash
LEFT JOIN blobs AS r ON r.blob_hash = f.reason_hash
WHERE f.run_id = :run_id AND f.order_number > :after AND f.order_number <= :through
ORDER BY f.order_number
