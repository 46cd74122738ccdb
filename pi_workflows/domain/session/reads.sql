-- name: segment
-- A capture as the decisions about it need it.
SELECT attempt_id, binding_hash, status, entry_count, event_count, failure_hash
FROM session_segments WHERE segment_id = :segment_id

-- name: totals
-- How many entries and how many events a run has, over all of its captures: their numbers are without gaps.
SELECT
    coalesce((SELECT run_seq FROM session_entries WHERE run_id = :run_id ORDER BY run_seq DESC LIMIT 1), 0),
    coalesce((SELECT run_seq FROM session_events WHERE run_id = :run_id ORDER BY run_seq DESC LIMIT 1), 0)

-- name: attempt_run
-- The run of an attempt.
SELECT run_id FROM node_attempts WHERE attempt_id = :attempt_id

-- name: strange_attempts
-- Of the attempts that are asked for, those that are none of the run.
SELECT asked.value FROM json_each(:attempt_ids) AS asked
WHERE NOT EXISTS (SELECT 1 FROM node_attempts AS a WHERE a.attempt_id = asked.value AND a.run_id = :run_id)

-- name: stored_entries
-- A range of a capture's entries.
SELECT entry_seq, entry_id, entry_hash FROM session_entries
WHERE segment_id = :segment_id AND entry_seq >= :first AND entry_seq <= :last
ORDER BY entry_seq

-- name: stored_events
-- A range of a capture's events.
SELECT event_seq, event_type, node_id, attempt_id, turn_id, message_id, tool_call_id, payload_hash
FROM session_events
WHERE segment_id = :segment_id AND event_seq >= :first AND event_seq <= :last
ORDER BY event_seq

-- name: known_entries
-- Of the entries that are asked for, those that the capture has under another number.
SELECT entry_id FROM session_entries
WHERE segment_id = :segment_id AND entry_id IN (SELECT value FROM json_each(:entry_ids))

-- name: lost_entry
-- An entry that a message became by what an event says, and that the capture does not have.
SELECT json_extract(CAST(b.content AS TEXT), '$.entryId') AS entry
FROM session_events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.segment_id = :segment_id AND e.event_type = 'message_finished' AND entry IS NOT NULL
  AND json_extract(CAST(b.content AS TEXT), '$.settled')
  AND NOT EXISTS (SELECT 1 FROM session_entries AS n WHERE n.segment_id = e.segment_id AND n.entry_id = entry)
LIMIT 1

-- name: checkpoint
-- The greatest stored state that is not beyond an event.
SELECT event_seq, state_hash FROM viewer_session_checkpoints
WHERE run_id = :run_id AND event_seq <= :seq
ORDER BY event_seq DESC LIMIT 1

-- name: folded
-- What a fold takes of a range of a run's events.
SELECT e.run_seq, e.event_type, e.message_id, e.tool_call_id, b.content
FROM session_events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.run_id = :run_id AND e.run_seq > :after AND e.run_seq <= :through
ORDER BY e.run_seq
