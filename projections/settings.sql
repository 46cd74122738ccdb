-- name: insert_scope
INSERT INTO workflow_settings (
    scope_id, resource_id, origin_run_id, active_run_id, mount_path, invocation, initial_hash, current_hash,
    created_at, updated_at)
VALUES (
    :scope_id, :resource_id, :origin_run_id, :active_run_id, :mount_path, :invocation, unhex(:initial_hash),
    unhex(:current_hash), :created_at, :updated_at)

-- name: insert_change
INSERT INTO workflow_setting_changes (
    change_id, scope_id, request_id, change_number, actor_type, actor_id, source_type, patch_hash, before_hash,
    after_hash, accepted_at)
VALUES (
    :change_id, :scope_id, :request_id, :change_number, :actor_type, :actor_id, :source_type, unhex(:patch_hash),
    unhex(:before_hash), unhex(:after_hash), :accepted_at)

-- name: change_scope
-- Guarded by the value that the change began from.
UPDATE workflow_settings SET current_hash = unhex(:after_hash), updated_at = :at_ms
WHERE scope_id = :scope_id AND current_hash = unhex(:before_hash)
