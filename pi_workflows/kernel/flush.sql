-- name: progress
-- What a capture holds.
SELECT segment_id, entry_count, event_count, entry_digest, event_digest
FROM session_segments WHERE segment_id = :segment_id
