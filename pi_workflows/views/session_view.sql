-- name: session_run
-- The run that reserves a session: a partial unique index holds those that have not ended.
SELECT run_id
FROM run_queue
WHERE origin_session_id = :session_id AND status IN ('queued', 'starting', 'running', 'parked')

-- name: run_binding
-- Which session a run came from, and whether it reserves it.
SELECT origin_session_id, execution_mode FROM run_bindings WHERE run_id = :run_id

-- name: session_attempts
-- What a row about a node says of its attempts. Their errors come along when they are small.
SELECT a.attempt_id, a.status, a.settings_change_number, a.started_at, a.finished_at,
       a.error_hash, e.media_type, e.byte_length,
       CASE WHEN e.byte_length <= :carried_bytes THEN e.content END
FROM json_each(:attempt_ids) AS asked
CROSS JOIN node_attempts AS a ON a.attempt_id = asked.value
LEFT JOIN blobs AS e ON e.blob_hash = a.error_hash

-- name: newest_end
-- The newest end that a session is told of, and its turns. A session's newest messages come first in its index.
SELECT m.run_id, r.status, m.status,
       (SELECT count(*) FROM workflow_turns AS t WHERE t.workflow_message_id = m.workflow_message_id),
       (SELECT count(*) FROM workflow_turns AS t
        WHERE t.workflow_message_id = m.workflow_message_id AND t.state = 'started'),
       (SELECT max(t.ended_at) FROM workflow_turns AS t WHERE t.workflow_message_id = m.workflow_message_id)
FROM workflow_messages AS m
CROSS JOIN runs AS r ON r.run_id = m.run_id
WHERE m.target_session_id = :session_id AND m.kind = 'terminal'
ORDER BY m.order_number DESC
LIMIT 1
