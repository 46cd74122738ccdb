-- What decisions about settings read.

-- name: scope
-- One scope with the number of its newest change.
SELECT s.scope_id, s.origin_run_id, s.mount_path, s.invocation, s.current_hash, r.revision
FROM workflow_settings AS s
JOIN resources AS r ON r.resource_id = s.resource_id
WHERE s.scope_id = :scope_id

-- name: newest_scope
-- The newest scope of a workflow in a run.
SELECT s.scope_id, s.origin_run_id, s.mount_path, s.invocation, s.current_hash, r.revision
FROM workflow_settings AS s
JOIN resources AS r ON r.resource_id = s.resource_id
WHERE s.active_run_id = :run_id AND s.mount_path = :mount_path
ORDER BY s.invocation DESC LIMIT 1

-- name: scopes_of_run
-- The newest scope of each workflow in a run, the root's first.
SELECT s.scope_id, s.origin_run_id, s.mount_path, s.invocation, s.current_hash, r.revision
FROM workflow_settings AS s
JOIN resources AS r ON r.resource_id = s.resource_id
WHERE s.active_run_id = :run_id AND NOT EXISTS (
    SELECT 1 FROM workflow_settings AS n
    WHERE n.active_run_id = s.active_run_id AND n.mount_path = s.mount_path AND n.invocation > s.invocation)
ORDER BY s.mount_path

-- name: change_of_request
-- The change that a request made before.
SELECT change_number, patch_hash FROM workflow_setting_changes
WHERE scope_id = :scope_id AND request_id = :request_id

-- name: attempt_binding
-- The change number that an attempt is bound to.
SELECT settings_change_number FROM node_attempts WHERE attempt_id = :attempt_id
