-- An attempt is said to have had settings that its scope never had.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('settings-x', 'settings', 'x', 0, 1, 1);
-- with: settings
UPDATE node_attempts
SET settings_scope_id = 'x', settings_change_number = 0,
    settings_hash = (SELECT other FROM value)
WHERE run_id = (SELECT run_id FROM victim);
