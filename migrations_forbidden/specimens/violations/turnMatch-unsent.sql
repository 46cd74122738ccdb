-- A turn answers a message that was not sent.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
-- with: message
INSERT INTO workflow_turns (
    workflow_turn_id, workflow_message_id, run_id, target_session_id, state, started_at)
SELECT 'one', workflow_message_id, run_id, 's', 'started', 1
FROM workflow_messages WHERE workflow_message_id = 'first';
