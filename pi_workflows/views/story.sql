-- name: story_events
-- The events of a resource that follow a revision, in order.
SELECT e.event_seq, e.resource_revision, e.recorded_at, e.actor_type, e.event_type, b.content
FROM events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.resource_id = :resource_id AND e.resource_revision > :after_revision
ORDER BY e.resource_revision
LIMIT :events_max

-- name: story_effects
-- The resource of each effect of a run.
SELECT resource_id FROM effects WHERE source_resource_id = :resource_id

-- name: story_decisions
-- The resource of each decision of a run.
SELECT resource_id FROM human_decisions WHERE run_id = :run_id

-- name: story_messages
-- The resource of each message of a run, in order.
SELECT resource_id FROM workflow_messages WHERE run_id = :run_id ORDER BY order_number

-- name: story_settings
-- The resource of each of a run's settings.
SELECT resource_id FROM workflow_settings WHERE origin_run_id = :run_id ORDER BY mount_path, invocation

-- name: story_follow_ups
-- The resource of each follow-up of a run, in order.
SELECT resource_id FROM workflow_follow_ups WHERE run_id = :run_id ORDER BY order_number

-- name: story_child
-- The run that restarted this one, and the event that says so.
SELECT r.run_id, e.event_seq, e.recorded_at, e.actor_type, e.event_type
FROM runs AS r
CROSS JOIN events AS e ON e.resource_id = r.resource_id AND e.resource_revision = 1
WHERE r.parent_run_id = :run_id
ORDER BY e.event_seq

-- name: story_bytes
-- How long a value is.
SELECT byte_length FROM blobs WHERE blob_hash = :blob_hash
