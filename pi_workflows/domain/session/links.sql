-- Which entries of a capture belong to its attempt.

-- name: is_linked
-- Whether the attempt has its links.
SELECT count(*) FROM attempt_entries WHERE attempt_id = :attempt_id

-- name: links
-- The first and the last entry; of the step's messages and of the answers in their turns the newest that it holds.
SELECT 'first' AS role, entry_id FROM session_entries
WHERE segment_id = :segment_id AND entry_seq = 1
UNION ALL
SELECT 'last', entry_id FROM session_entries
WHERE segment_id = :segment_id
  AND entry_seq = (SELECT max(entry_seq) FROM session_entries WHERE segment_id = :segment_id)
UNION ALL
SELECT 'prompt', entry_id FROM (
    SELECT m.pi_session_entry_id AS entry_id
    FROM interactive_requests AS q
    CROSS JOIN workflow_messages AS m ON m.kind = 'step' AND m.source_id = q.request_id
    CROSS JOIN session_entries AS e ON e.segment_id = :segment_id AND e.entry_id = m.pi_session_entry_id
    WHERE q.attempt_id = :attempt_id
    ORDER BY m.order_number DESC LIMIT 1)
UNION ALL
SELECT 'response', entry_id FROM (
    SELECT t.response_session_entry_id AS entry_id
    FROM interactive_requests AS q
    CROSS JOIN workflow_messages AS m ON m.kind = 'step' AND m.source_id = q.request_id
    CROSS JOIN workflow_turns AS t ON t.workflow_message_id = m.workflow_message_id
    CROSS JOIN session_entries AS e ON e.segment_id = :segment_id AND e.entry_id = t.response_session_entry_id
    WHERE q.attempt_id = :attempt_id
    ORDER BY m.order_number DESC, t.started_at DESC, t.workflow_turn_id DESC LIMIT 1)
