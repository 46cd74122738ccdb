-- A scope has a change that its revision does not count.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('settings-x', 'settings', 'x', 0, 1, 1);
-- with: settings
INSERT INTO workflow_setting_changes (
    change_id, scope_id, request_id, change_number, actor_type, source_type, patch_hash, before_hash, after_hash,
    accepted_at)
VALUES (
    'change-1', 'x', 'q1', 1, 'human', 'x', (SELECT digest FROM value),
    (SELECT digest FROM value), (SELECT digest FROM value), 1);
