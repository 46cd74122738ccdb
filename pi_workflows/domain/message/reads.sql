-- What decisions about messages and turns read.

-- name: message
-- One message with its run and its open turn, if it has one.
SELECT m.workflow_message_id, m.run_id, m.target_session_id, m.kind, m.source_id, m.status, m.pi_session_entry_id,
       m.recovery_stop, r.status, r.paused
FROM workflow_messages AS m
JOIN runs AS r ON r.run_id = m.run_id
WHERE m.workflow_message_id = :workflow_message_id

-- name: newest_order
-- The newest place in a session's order of messages.
SELECT order_number FROM workflow_messages
WHERE target_session_id = :session_id ORDER BY order_number DESC LIMIT 1

-- name: pending_of_run
-- The messages of a run that wait to be told, and their kinds. A session's pending ones are few; the index holds them.
SELECT m.workflow_message_id, m.run_id, m.target_session_id, m.kind, m.source_id, m.status, m.pi_session_entry_id,
       m.recovery_stop, r.status, r.paused
FROM run_bindings AS b
JOIN workflow_messages AS m ON m.target_session_id = b.origin_session_id AND m.status = 'pending'
JOIN runs AS r ON r.run_id = m.run_id
WHERE b.run_id = :run_id AND m.run_id = :run_id
ORDER BY m.order_number

-- name: message_known
-- Whether a message was made under this identity.
SELECT workflow_message_id FROM workflow_messages WHERE workflow_message_id = :workflow_message_id

-- name: turn
-- One turn.
SELECT workflow_turn_id, workflow_message_id, run_id, target_session_id, state, stop_reason, response_session_entry_id,
       active_elapsed_ms, started_at, ended_at
FROM workflow_turns WHERE workflow_turn_id = :workflow_turn_id

-- name: open_turn
-- The one turn that a session's model takes now.
SELECT workflow_turn_id, workflow_message_id, run_id, target_session_id, state, stop_reason, response_session_entry_id,
       active_elapsed_ms, started_at, ended_at
FROM workflow_turns WHERE target_session_id = :session_id AND state = 'started'

-- name: open_turns_of_run
-- The open turns that a run has in its session: one at most.
SELECT t.workflow_turn_id, t.workflow_message_id, t.run_id, t.target_session_id, t.state, t.stop_reason,
       t.response_session_entry_id, t.active_elapsed_ms, t.started_at, t.ended_at
FROM run_bindings AS b
JOIN workflow_turns AS t ON t.target_session_id = b.origin_session_id AND t.state = 'started'
WHERE b.run_id = :run_id AND t.run_id = :run_id

-- name: unproductive_turns
-- How many turns for one request ended while it was open: a turn that answered it settled it.
SELECT count(*)
FROM workflow_messages AS m
JOIN workflow_turns AS t ON t.workflow_message_id = m.workflow_message_id
WHERE m.kind = 'step' AND m.source_id = :request_id AND t.state = 'ended' AND t.stop_reason IN ('completed', 'error')

-- name: pending_of_source
-- Whether a source has a message that waits to be told.
SELECT count(*) FROM workflow_messages WHERE kind = :kind AND source_id = :source_id AND status = 'pending'

-- name: terminal_message
-- The message that tells a run's end.
SELECT workflow_message_id FROM workflow_messages WHERE kind = 'terminal' AND source_id = :run_id
