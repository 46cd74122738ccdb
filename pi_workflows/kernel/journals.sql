-- name: runs
-- The runs of which anything was captured, one lookup for each in either journal.
WITH RECURSIVE entries (run_id) AS (
    SELECT min(run_id) FROM session_entries
    UNION ALL
    SELECT (SELECT min(n.run_id) FROM session_entries AS n WHERE n.run_id > entries.run_id)
    FROM entries WHERE entries.run_id IS NOT NULL
),

events (run_id) AS (
    SELECT min(run_id) FROM session_events
    UNION ALL
    SELECT (SELECT min(n.run_id) FROM session_events AS n WHERE n.run_id > events.run_id)
    FROM events WHERE events.run_id IS NOT NULL
)

SELECT run_id FROM entries WHERE run_id IS NOT NULL
UNION
SELECT run_id FROM events WHERE run_id IS NOT NULL

-- name: next_revision
-- The presentation revision of the next row of either journal; null when both are at their ends.
SELECT min(revision) FROM (
    SELECT * FROM (
        SELECT presentation_revision AS revision FROM session_entries
        WHERE run_id = :run_id AND run_seq > :entry_seq ORDER BY run_seq LIMIT 1)
    UNION ALL
    SELECT * FROM (
        SELECT presentation_revision AS revision FROM session_events
        WHERE run_id = :run_id AND run_seq > :event_seq ORDER BY run_seq LIMIT 1))

-- name: entries
-- A range of a run's entries.
SELECT segment_id, entry_seq, run_seq, entry_id, entry_hash, run_id, presentation_revision, recorded_at
FROM session_entries WHERE run_id = :run_id AND run_seq > :after ORDER BY run_seq LIMIT :rows

-- name: events
-- A range of a run's events.
SELECT segment_id, event_seq, run_seq, event_type, node_id, attempt_id, turn_id, message_id, tool_call_id,
       payload_hash, run_id, presentation_revision, recorded_at
FROM session_events WHERE run_id = :run_id AND run_seq > :after ORDER BY run_seq LIMIT :rows
