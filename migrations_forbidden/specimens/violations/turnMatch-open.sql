-- A turn works on a step of a run that has ended.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM victim), 's', 'step',
    (SELECT request_id FROM victim), (SELECT digest FROM value),
    1, 'sent', 'entry-1', NULL, 1, 1, 'message-first');
INSERT INTO workflow_turns (
    workflow_turn_id, workflow_message_id, run_id, target_session_id, state, started_at)
SELECT 'one', workflow_message_id, run_id, 's', 'started', 1
FROM workflow_messages WHERE workflow_message_id = 'first';
