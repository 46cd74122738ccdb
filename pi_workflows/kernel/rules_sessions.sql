-- As rules_log.sql: one row for each violation, the run that it concerns, or NULL and the resource.

-- Messages and turns --------------------------------------------------------------------------------------------------

-- name: session_turns
-- A session has one open turn at most.
SELECT run_id FROM (
    SELECT run_id, count(*) OVER (PARTITION BY target_session_id) AS n FROM workflow_turns WHERE state = 'started')
WHERE n > 1

-- name: turn_match
-- A turn answers a message that was sent to its session and starts one, for a run that goes on.
SELECT t.run_id
FROM workflow_turns AS t
JOIN workflow_messages AS m ON m.workflow_message_id = t.workflow_message_id
LEFT JOIN runs AS r ON r.run_id = t.run_id
WHERE t.run_id <> m.run_id OR t.target_session_id <> m.target_session_id OR m.status <> 'sent'
   OR m.kind IN ('decision', 'notification')
   OR (t.state = 'started' AND m.kind = 'step' AND r.status IN ('completed', 'failed', 'timed_out', 'cancelled'))

-- name: message_source
-- A message comes from what its kind says, of its own run, and waits only while that is wanted. Where a notification
-- comes from is no row.
SELECT m.run_id
FROM workflow_messages AS m
WHERE NOT CASE m.kind
    WHEN 'step' THEN EXISTS (
        SELECT 1 FROM interactive_requests AS q
        WHERE q.request_id = m.source_id AND q.run_id = m.run_id
          AND (m.status <> 'pending' OR q.status = 'pending'))
    WHEN 'decision' THEN EXISTS (
        SELECT 1 FROM human_decisions AS d
        WHERE d.decision_id = m.source_id AND d.run_id = m.run_id
          AND (m.status <> 'pending' OR NOT EXISTS (SELECT 1 FROM human_decision_resolutions AS r
                                                    WHERE r.decision_id = d.decision_id)))
    WHEN 'terminal' THEN EXISTS (
        SELECT 1 FROM runs AS r
        WHERE r.run_id = m.source_id AND r.run_id = m.run_id
          AND r.status IN ('completed', 'failed', 'timed_out', 'cancelled'))
    WHEN 'followUp' THEN EXISTS (
        SELECT 1 FROM workflow_follow_ups AS f
        WHERE f.follow_up_id = m.source_id AND f.run_id = m.run_id
          AND (m.status <> 'pending' OR f.status = 'queued'))
    ELSE 1
END

-- name: terminal_messages
-- A run tells its end once.
SELECT run_id FROM workflow_messages WHERE kind = 'terminal' GROUP BY run_id HAVING count(*) > 1

-- name: reminders
-- A question is brought back to mind twice at most; why a message was made stands in its first event.
SELECT min(m.run_id)
FROM workflow_messages AS m
JOIN events AS e ON e.resource_id = m.resource_id AND e.resource_revision = 1
JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE m.kind = 'step' AND e.event_type = 'message.created' AND json_valid(CAST(b.content AS TEXT))
  AND json_extract(CAST(b.content AS TEXT), '$.reason') = 'reminder'
GROUP BY m.source_id HAVING count(*) > 2

-- name: message_entries
-- An entry of a session is one message.
SELECT run_id FROM (
    SELECT run_id, count(*) OVER (PARTITION BY target_session_id, pi_session_entry_id) AS n
    FROM workflow_messages WHERE pi_session_entry_id IS NOT NULL)
WHERE n > 1

-- name: recovery_stop
-- Only the end of a run can stop a recovery.
SELECT run_id FROM workflow_messages WHERE recovery_stop IS NOT NULL AND kind <> 'terminal'

-- Captured sessions ---------------------------------------------------------------------------------------------------

-- name: segments
-- A capture counts what it holds, and has an end and a failure exactly when it ended or failed.
SELECT s.run_id
FROM session_segments AS s
WHERE (s.status = 'recording') <> (s.finished_at IS NULL) OR (s.status = 'failed') <> (s.failure_hash IS NOT NULL)
   OR s.entry_count <> (SELECT count(*) FROM session_entries AS e WHERE e.segment_id = s.segment_id)
   OR s.event_count <> (SELECT count(*) FROM session_events AS e WHERE e.segment_id = s.segment_id)

-- name: segment_rows
-- What a capture holds is numbered 1..N in it and belongs to its run.
SELECT e.run_id
FROM (
    SELECT segment_id, run_id, entry_seq, row_number() OVER (PARTITION BY segment_id ORDER BY entry_seq) AS expected
    FROM session_entries) AS e
JOIN session_segments AS s ON s.segment_id = e.segment_id
WHERE e.entry_seq <> e.expected OR e.run_id <> s.run_id
UNION ALL
SELECT e.run_id
FROM (
    SELECT segment_id, run_id, event_seq, row_number() OVER (PARTITION BY segment_id ORDER BY event_seq) AS expected
    FROM session_events) AS e
JOIN session_segments AS s ON s.segment_id = e.segment_id
WHERE e.event_seq <> e.expected OR e.run_id <> s.run_id

-- name: run_rows
-- What was captured of a run is numbered 1..N over all of its captures, entries and events apart.
SELECT run_id
FROM (
    SELECT run_id, run_seq, row_number() OVER (PARTITION BY run_id ORDER BY run_seq) AS expected FROM session_entries)
WHERE run_seq <> expected
UNION ALL
SELECT run_id
FROM (
    SELECT run_id, run_seq, row_number() OVER (PARTITION BY run_id ORDER BY run_seq) AS expected FROM session_events)
WHERE run_seq <> expected

-- name: entry_links
-- An attempt's entries were captured in its own run, and an event's attempt is one of that run.
SELECT a.run_id
FROM attempt_entries AS e
JOIN node_attempts AS a ON a.attempt_id = e.attempt_id
JOIN session_segments AS s ON s.segment_id = e.segment_id
WHERE a.run_id <> s.run_id
UNION ALL
SELECT e.run_id
FROM session_events AS e
WHERE e.attempt_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM node_attempts AS a WHERE a.attempt_id = e.attempt_id AND a.run_id = e.run_id)

-- What people look at -------------------------------------------------------------------------------------------------

-- name: viewer_cursor
-- Every run has a cursor, and the floor trails it by the window.
SELECT r.run_id FROM runs AS r LEFT JOIN viewer_runs AS v ON v.run_id = r.run_id
WHERE v.run_id IS NULL OR v.retained_from_revision <> max(1, v.presentation_revision - 255)

-- name: viewer_deltas
-- Where a run's view has patches, each revision of the window has them, numbered 0..N-1. The first revision has none.
SELECT d.run_id
FROM (
    SELECT run_id, presentation_revision, delta_index, lag(presentation_revision) OVER w AS before,
           lag(delta_index) OVER w AS index_before, lead(presentation_revision) OVER w AS following
    FROM viewer_deltas WINDOW w AS (PARTITION BY run_id ORDER BY presentation_revision, delta_index)) AS d
JOIN viewer_runs AS v ON v.run_id = d.run_id
WHERE d.presentation_revision NOT BETWEEN max(2, v.retained_from_revision) AND v.presentation_revision
   OR d.delta_index <> iif(d.presentation_revision IS d.before, d.index_before + 1, 0)
   OR (d.before IS NULL AND d.presentation_revision <> max(2, v.retained_from_revision))
   OR d.presentation_revision > d.before + 1
   OR (d.following IS NULL AND d.presentation_revision <> v.presentation_revision)

-- name: checkpoints
-- A run has a checkpoint at each 256th event of its captured sessions.
SELECT v.run_id
FROM viewer_runs AS v
WHERE (SELECT count(*) FROM viewer_session_checkpoints AS c WHERE c.run_id = v.run_id)
      <> coalesce((SELECT max(e.run_seq) FROM session_events AS e WHERE e.run_id = v.run_id), 0) / 256
   OR EXISTS (SELECT 1 FROM viewer_session_checkpoints AS c
              WHERE c.run_id = v.run_id
                AND (c.event_seq % 256 <> 0
                     OR c.event_seq > (SELECT max(e.run_seq) FROM session_events AS e WHERE e.run_id = v.run_id)))
