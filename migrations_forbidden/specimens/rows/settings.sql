-- Settings of a run.

INSERT INTO leases (resource_id, generation) VALUES ('settings-x', 0);
INSERT INTO workflow_settings (
    scope_id, resource_id, origin_run_id, active_run_id, mount_path, invocation, initial_hash, current_hash,
    created_at, updated_at)
SELECT 'x', 'settings-x', run_id, run_id, '', 1,
       (SELECT digest FROM value),
       (SELECT digest FROM value), 1, 1
FROM victim;
