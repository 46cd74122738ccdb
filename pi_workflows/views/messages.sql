-- What a run told its session.

-- name: total
-- How many messages a run has; the index alone is read.
SELECT count(*) FROM workflow_messages WHERE run_id = :run_id

-- name: newest
-- The newest messages, from the end, as many as the least that they can take fits into so many bytes.
SELECT workflow_message_id
FROM (
    SELECT m.workflow_message_id, m.order_number,
           sum(min(b.byte_length, :reference_bytes) + :item_bytes) OVER (ORDER BY m.order_number DESC) AS taken,
           row_number() OVER (ORDER BY m.order_number DESC) AS place
    FROM (SELECT workflow_message_id, order_number, content_hash FROM workflow_messages
          WHERE run_id = :run_id ORDER BY order_number DESC LIMIT :items_max) AS m
    CROSS JOIN blobs AS b ON b.blob_hash = m.content_hash)
WHERE taken <= :bytes_max OR place = 1
ORDER BY order_number

-- name: range
-- A range of them, by their places in the run: a session numbers its messages over all of its runs.
SELECT workflow_message_id
FROM workflow_messages WHERE run_id = :run_id
ORDER BY order_number LIMIT :count OFFSET :start

-- name: messages
-- Messages with their texts and their newest turns.
SELECT m.workflow_message_id, m.run_id, m.target_session_id, m.kind, m.source_id, m.order_number, m.status,
       m.pi_session_entry_id, m.recovery_stop, m.created_at, m.updated_at,
       m.content_hash, b.media_type, b.byte_length,
       CASE WHEN b.byte_length <= :carried_bytes THEN b.content END,
       t.workflow_turn_id, t.state, t.stop_reason, t.response_session_entry_id, t.started_at, t.ended_at
FROM json_each(:message_ids) AS asked
CROSS JOIN workflow_messages AS m ON m.workflow_message_id = asked.value
CROSS JOIN blobs AS b ON b.blob_hash = m.content_hash
LEFT JOIN workflow_turns AS t ON t.workflow_turn_id = (
    SELECT n.workflow_turn_id FROM workflow_turns AS n
    WHERE n.workflow_message_id = m.workflow_message_id
    ORDER BY n.state DESC, n.started_at DESC, n.workflow_turn_id DESC LIMIT 1)
ORDER BY asked.key
