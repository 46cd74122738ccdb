-- What a session is to look for in its branch, or to add to it.

-- name: message
-- One message as its session sees it.
SELECT m.workflow_message_id, m.run_id, m.target_session_id, m.kind, m.source_id, m.order_number, m.status,
       m.pi_session_entry_id, m.created_at, m.updated_at, r.status, r.paused,
       m.content_hash, b.media_type, b.byte_length, CASE WHEN b.byte_length <= :carried_bytes THEN b.content END
FROM workflow_messages AS m
CROSS JOIN runs AS r ON r.run_id = m.run_id
CROSS JOIN blobs AS b ON b.blob_hash = m.content_hash
WHERE m.workflow_message_id = :workflow_message_id

-- name: pending
-- The messages that wait to be told to a session, the oldest first: what may be told now is among the first of them, save
-- for prompts that wait for their run's end.
SELECT m.workflow_message_id, m.kind, m.source_id, r.paused
FROM workflow_messages AS m
CROSS JOIN runs AS r ON r.run_id = m.run_id
WHERE m.target_session_id = :session_id AND m.status = 'pending'
ORDER BY m.order_number
LIMIT :limit

-- name: owed
-- The newest message of an open question that its session holds already.
SELECT m.workflow_message_id
FROM interactive_requests AS q
CROSS JOIN workflow_messages AS m ON m.kind = 'step' AND m.source_id = q.request_id
CROSS JOIN runs AS r ON r.run_id = q.run_id
WHERE q.target_session_id = :session_id AND q.status = 'pending' AND m.status = 'sent' AND r.paused = 0
ORDER BY m.order_number DESC
LIMIT 1

-- name: unreported
-- The newest step of the session's current run when it was cancelled and nobody has said what became of it: its branch
-- may hold it.
SELECT n.workflow_message_id
FROM (
    SELECT m.workflow_message_id, m.kind, m.status
    FROM run_queue AS q
    CROSS JOIN workflow_messages AS m ON m.run_id = q.run_id
    WHERE q.origin_session_id = :session_id AND q.status IN ('queued', 'starting', 'running', 'parked')
    ORDER BY m.order_number DESC
    LIMIT 1) AS n
WHERE n.kind = 'step' AND n.status = 'cancelled'
  AND NOT EXISTS (SELECT 1 FROM workflow_turns AS t WHERE t.workflow_message_id = n.workflow_message_id)

-- name: end
-- The message that tells a run's end.
SELECT workflow_message_id FROM workflow_messages WHERE kind = 'terminal' AND source_id = :run_id
