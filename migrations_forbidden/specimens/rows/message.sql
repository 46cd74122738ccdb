-- A message that ends a run.

INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM victim), 's', 'terminal',
    (SELECT run_id FROM victim), (SELECT digest FROM value),
    1, 'pending', NULL, NULL, 1, 1, 'message-first');
