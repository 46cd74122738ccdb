-- Two messages are one entry of a session.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM victim), 's', 'terminal',
    (SELECT run_id FROM victim), (SELECT digest FROM value),
    1, 'sent', 'entry-1', NULL, 1, 1, 'message-first');
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-second', 'message', 'second', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-second', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'second', (SELECT run_id FROM victim), 's', 'notification',
    'visit', (SELECT digest FROM value),
    2, 'sent', 'entry-1', NULL, 1, 1, 'message-second');
