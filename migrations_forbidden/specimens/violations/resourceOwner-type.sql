-- A follow-up belongs to the resource of settings.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('settings-x', 'settings', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('settings-x', 0);
INSERT INTO workflow_follow_ups (
    follow_up_id, resource_id, run_id, request_id, order_number, target_session_id, actor_type, source_type,
    prompt_hash, status, reason_hash, created_at, updated_at)
SELECT 'x', 'settings-x', run_id, 'q', 1, 's', 'human', 'x',
       (SELECT digest FROM value), 'removed',
       (SELECT digest FROM value), 1, 1
FROM victim;
