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

-- name: unproductive_turn
-- The turn that worked on the newest of a request's messages that had one, if it ended without an answer.
SELECT t.workflow_turn_id
FROM workflow_messages AS m
JOIN workflow_turns AS t ON t.workflow_message_id = m.workflow_message_id
WHERE m.kind = 'step' AND m.source_id = :request_id AND t.state = 'ended' AND t.stop_reason IN ('completed', 'error')
ORDER BY m.order_number DESC, t.ended_at DESC
LIMIT 1

-- name: pending_of_source
-- Whether a source has a message that waits to be told.
SELECT count(*) FROM workflow_messages WHERE kind = :kind AND source_id = :source_id AND status = 'pending'

-- name: terminal_message
-- The message that tells a run's end.
SELECT workflow_message_id FROM workflow_messages WHERE kind = 'terminal' AND source_id = :run_id

-- name: message_of_entry
-- The message that an entry of a session holds.
SELECT workflow_message_id FROM workflow_messages
WHERE target_session_id = :session_id AND pi_session_entry_id = :entry_id

-- name: open_handoff
-- The message about a run's end that its session works for now.
SELECT m.workflow_message_id
FROM run_bindings AS b
JOIN workflow_turns AS t ON t.target_session_id = b.origin_session_id AND t.state = 'started'
JOIN workflow_messages AS m ON m.workflow_message_id = t.workflow_message_id
WHERE b.run_id = :run_id AND m.run_id = :run_id AND m.kind = 'terminal'

-- name: chain
-- The first run of a recovery chain and how many were launched by themselves after it.
SELECT c.root_run_id, (SELECT count(*) FROM runs AS l WHERE l.recovery_root_run_id = c.root_run_id)
FROM (SELECT coalesce(recovery_root_run_id, run_id) AS root_run_id FROM runs WHERE run_id = :run_id) AS c

-- name: launched_run
-- The one run that was launched from the message about a run's end.
SELECT run_id FROM runs WHERE recovery_source_message_id = :workflow_message_id

-- name: ended_run
-- What the message about a run's end quotes of the run.
SELECT d.workflow_name, r.input_hash, r.final_output_hash, r.error_hash, r.recovery_root_run_id
FROM runs AS r
JOIN workflow_definitions AS d ON d.definition_digest = r.definition_digest
WHERE r.run_id = :run_id

-- name: newest_steps
-- The newest settled attempts.
SELECT a.node_id, a.status, a.output_hash, a.error_hash
FROM run_steps AS s
JOIN node_attempts AS a ON a.attempt_id = s.attempt_id
WHERE s.run_id = :run_id
ORDER BY s.step_index DESC
LIMIT :limit

-- name: launches
-- How many runs were launched by themselves after the first of a chain.
SELECT count(*) FROM runs WHERE recovery_root_run_id = :run_id

-- name: value_head
-- The type and size of a stored value.
SELECT media_type, byte_length FROM blobs WHERE blob_hash = :digest
