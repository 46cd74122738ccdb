-- A follow-up waits for a run that failed.
-- also: terminalWork

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'failed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('follow_up-x', 'follow_up', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('follow_up-x', 0);
INSERT INTO workflow_follow_ups (
    follow_up_id, resource_id, run_id, request_id, order_number, target_session_id, actor_type, source_type,
    prompt_hash, status, reason_hash, created_at, updated_at)
SELECT 'x', 'follow_up-x', run_id, 'q', 1, 's', 'human', 'x',
       (SELECT digest FROM value), 'queued',
       NULL, 1, 1
FROM victim;
