-- A message still brings a follow-up that was removed.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('follow_up-x', 'follow_up', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('follow_up-x', 0);
INSERT INTO workflow_follow_ups (
    follow_up_id, resource_id, run_id, request_id, order_number, target_session_id, actor_type, source_type,
    prompt_hash, status, reason_hash, created_at, updated_at)
SELECT 'x', 'follow_up-x', run_id, 'q', 1, 's', 'human', 'x',
       (SELECT digest FROM value), 'removed',
       (SELECT digest FROM value), 1, 1
FROM victim;
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM victim), 's', 'followUp',
    'x', (SELECT digest FROM value),
    1, 'pending', NULL, NULL, 1, 1, 'message-first');
