-- A row of workflow_settings belongs to a resource with another key.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('settings-y', 'settings', 'y', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('settings-y', 0);
INSERT INTO workflow_settings (
    scope_id, resource_id, origin_run_id, active_run_id, mount_path, invocation, initial_hash, current_hash,
    created_at, updated_at)
SELECT 'x', 'settings-y', run_id, run_id, '', 1, (SELECT digest FROM value),
       (SELECT digest FROM value), 1, 1
FROM victim;
