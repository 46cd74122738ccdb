-- What the server goes on with in Pi sessions.

-- name: open_turns
-- The open turns; a partial index holds them.
SELECT t.workflow_turn_id, t.workflow_message_id, t.run_id, t.target_session_id, m.kind, t.active_elapsed_ms
FROM workflow_turns AS t
CROSS JOIN workflow_messages AS m ON m.workflow_message_id = t.workflow_message_id
WHERE t.state = 'started'

-- name: open_clock
-- The open interval of the attempt of a run that waits for its session, and its budget.
SELECT a.run_id, a.attempt_id, q.request_id, i.interval_number, coalesce(a.timeout_ms, 0),
       (SELECT coalesce(sum(o.elapsed_ms), 0) FROM attempt_active_intervals AS o
        WHERE o.attempt_id = a.attempt_id AND o.ended_at IS NOT NULL)
FROM node_attempts AS a
CROSS JOIN attempt_active_intervals AS i ON i.attempt_id = a.attempt_id AND i.ended_at IS NULL
CROSS JOIN interactive_requests AS q ON q.attempt_id = a.attempt_id
WHERE a.run_id = :run_id AND a.status IN ('pending', 'running', 'waiting') AND a.status = 'waiting'

-- name: running_clocks
-- Every such interval, for a server that takes over.
SELECT a.run_id, a.attempt_id, q.request_id, i.interval_number, coalesce(a.timeout_ms, 0),
       (SELECT coalesce(sum(o.elapsed_ms), 0) FROM attempt_active_intervals AS o
        WHERE o.attempt_id = a.attempt_id AND o.ended_at IS NOT NULL)
FROM attempt_active_intervals AS i
CROSS JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
CROSS JOIN interactive_requests AS q ON q.attempt_id = a.attempt_id
WHERE i.ended_at IS NULL AND a.status = 'waiting'
ORDER BY a.run_id

-- name: judged
-- The submissions that are being judged: those of open questions, which an index holds.
SELECT q.run_id, q.request_id, s.submission_id
FROM interactive_requests AS q
CROSS JOIN interactive_submissions AS s ON s.request_id = q.request_id AND s.outcome = 'validating'
WHERE q.status = 'pending'
ORDER BY q.run_id

-- name: untold_ends
-- The runs of sessions that ended and whose end no message tells.
SELECT r.run_id
FROM run_bindings AS b
CROSS JOIN runs AS r ON r.run_id = b.run_id
WHERE b.execution_mode = 'interactive' AND r.status IN ('completed', 'failed', 'timed_out', 'cancelled')
  AND NOT EXISTS (SELECT 1 FROM workflow_messages AS m WHERE m.kind = 'terminal' AND m.source_id = r.run_id)
ORDER BY r.run_id
