-- name: insert_message
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    :workflow_message_id, :run_id, :target_session_id, :kind, :source_id, unhex(:content_hash), :order_number, :status,
    :pi_session_entry_id, :recovery_stop, :created_at, :updated_at, :resource_id)

-- name: change_message
UPDATE workflow_messages
SET status = :status, pi_session_entry_id = :pi_session_entry_id, recovery_stop = :recovery_stop, updated_at = :at_ms
WHERE workflow_message_id = :workflow_message_id

-- name: insert_turn
INSERT INTO workflow_turns (
    workflow_turn_id, workflow_message_id, run_id, target_session_id, state, stop_reason, response_session_entry_id,
    active_elapsed_ms, started_at, ended_at)
VALUES (
    :workflow_turn_id, :workflow_message_id, :run_id, :target_session_id, :state, :stop_reason,
    :response_session_entry_id, :active_elapsed_ms, :started_at, :ended_at)

-- name: end_turn
UPDATE workflow_turns
SET state = 'ended', stop_reason = :stop_reason, response_session_entry_id = :response_session_entry_id,
    active_elapsed_ms = :active_elapsed_ms, ended_at = :ended_at
WHERE workflow_turn_id = :workflow_turn_id AND state = 'started'
