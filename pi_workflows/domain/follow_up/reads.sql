-- What decisions about follow-ups read.

-- name: follow_up
-- One follow-up, and whether its message was sent.
SELECT f.follow_up_id, f.run_id, f.actor_type, f.status,
       EXISTS (SELECT 1 FROM workflow_messages AS m
               WHERE m.kind = 'followUp' AND m.source_id = f.follow_up_id AND m.status = 'sent')
FROM workflow_follow_ups AS f
WHERE f.follow_up_id = :follow_up_id

-- name: of_request
-- The follow-up that a request queued before.
SELECT follow_up_id, order_number, prompt_hash FROM workflow_follow_ups
WHERE run_id = :run_id AND request_id = :request_id

-- name: newest_order
-- The place of a run's newest follow-up, 0 before the first.
SELECT coalesce(max(order_number), 0) FROM workflow_follow_ups WHERE run_id = :run_id

-- name: waiting_of_run
-- The follow-ups of a run that wait, in their order.
SELECT follow_up_id, run_id, actor_type, status, 0 FROM workflow_follow_ups
WHERE run_id = :run_id AND status = 'queued' ORDER BY order_number

-- name: eligible
-- Whether a follow-up's turn has come: its run completed and was told so, in a turn that succeeded; what was queued
-- before it is settled or cancelled; and no other run has the session.
SELECT f.order_number
FROM workflow_follow_ups AS f
JOIN runs AS r ON r.run_id = f.run_id
WHERE f.follow_up_id = :follow_up_id AND f.status = 'queued' AND r.status = 'completed'
  AND EXISTS (
      SELECT 1 FROM workflow_messages AS m
      JOIN workflow_turns AS t ON t.workflow_message_id = m.workflow_message_id
      WHERE m.kind = 'terminal' AND m.source_id = f.run_id AND m.status = 'sent' AND t.stop_reason = 'completed')
  AND NOT EXISTS (
      SELECT 1 FROM workflow_follow_ups AS e
      WHERE e.run_id = f.run_id AND e.order_number < f.order_number AND e.status = 'queued'
        AND NOT EXISTS (
            SELECT 1 FROM workflow_messages AS m
            JOIN workflow_turns AS t ON t.workflow_message_id = m.workflow_message_id
            WHERE m.kind = 'followUp' AND m.source_id = e.follow_up_id AND t.state = 'ended'))
  AND NOT EXISTS (
      SELECT 1 FROM run_queue AS q
      WHERE q.origin_session_id = f.target_session_id AND q.status IN ('queued', 'starting', 'running', 'parked'))
