-- name: insert_segment
INSERT INTO session_segments (
    segment_id, run_id, attempt_id, capture_key, session_id, resource_id, binding_hash, status, entry_count,
    event_count, entry_digest, event_digest, failure_hash, created_at, finished_at)
VALUES (
    :segment_id, :run_id, :attempt_id, :capture_key, :session_id, :resource_id, unhex(:binding_hash), :status,
    :entry_count, :event_count, unhex(:entry_digest), unhex(:event_digest), unhex(:failure_hash), :created_at,
    :finished_at)

-- name: move_segment
-- Only a capture that goes on gets more, and it never holds less.
UPDATE session_segments
SET entry_count = :entry_count, event_count = :event_count, entry_digest = :entry_digest, event_digest = :event_digest
WHERE segment_id = :segment_id AND status = 'recording'
  AND entry_count <= :entry_count AND event_count <= :event_count

-- name: end_segment
-- The counts are those of the journals: an event that says otherwise ends nothing.
UPDATE session_segments SET status = :status, failure_hash = unhex(:failure_hash), finished_at = :finished_at
WHERE segment_id = :segment_id AND status = 'recording' AND entry_count = :entry_count AND event_count = :event_count
