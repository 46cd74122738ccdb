-- A run recovers from a message that does not tell the end of a run of its chain.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'failed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM first_run WHERE status = 'completed'), 's', 'notification',
    'visit', (SELECT digest FROM value),
    1, 'pending', NULL, NULL, 1, 1, 'message-first');
UPDATE runs
SET recovery_root_run_id = (SELECT run_id FROM first_run WHERE status = 'completed'),
    recovery_source_message_id = 'first'
WHERE run_id = (SELECT run_id FROM victim);
