-- name: total
-- How many settings a run has: one for each invocation of a workflow that declares some.
SELECT count(*) FROM workflow_settings WHERE active_run_id = :run_id

-- name: scopes
-- A range of them with their values, by workflow and invocation, as index workflow_settings_active_run_id has them.
SELECT s.scope_id, s.mount_path, s.invocation, r.revision, s.created_at, s.updated_at,
       s.current_hash, c.media_type, c.byte_length,
       CASE WHEN c.byte_length <= :carried_bytes THEN c.content END,
       s.initial_hash, i.media_type, i.byte_length,
       CASE WHEN i.byte_length <= :carried_bytes THEN i.content END
FROM workflow_settings AS s
CROSS JOIN resources AS r ON r.resource_id = s.resource_id
CROSS JOIN blobs AS c ON c.blob_hash = s.current_hash
CROSS JOIN blobs AS i ON i.blob_hash = s.initial_hash
WHERE s.active_run_id = :run_id
ORDER BY s.mount_path, s.invocation
LIMIT :count OFFSET :start

-- name: changes
-- The newest changes of some settings.
SELECT n.change_number, n.actor_type, n.source_type, n.accepted_at, n.patch_hash, b.media_type, b.byte_length,
       CASE WHEN b.byte_length <= :carried_bytes THEN b.content END
FROM workflow_setting_changes AS n
CROSS JOIN blobs AS b ON b.blob_hash = n.patch_hash
WHERE n.scope_id = :scope_id AND n.change_number > :after
ORDER BY n.change_number
