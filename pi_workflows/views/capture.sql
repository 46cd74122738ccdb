-- name: newest
-- A run's newest capture.
SELECT status, entry_count, event_count, binding_hash, failure_hash, created_at
FROM session_segments WHERE run_id = :run_id ORDER BY created_at DESC, segment_id DESC LIMIT 1

-- name: sums
-- What a run's captures came to, and what they hold together.
SELECT count(*) FILTER (WHERE status = 'recording'), count(*) FILTER (WHERE status = 'failed'),
       coalesce(sum(entry_count), 0), coalesce(sum(event_count), 0)
FROM session_segments WHERE run_id = :run_id

-- name: entry_total
-- The number of a run's newest entry; they are numbered from 1.
SELECT run_seq FROM session_entries WHERE run_id = :run_id ORDER BY run_seq DESC LIMIT 1

-- name: event_total
-- The number of a run's newest event; they are numbered from 1.
SELECT run_seq FROM session_events WHERE run_id = :run_id ORDER BY run_seq DESC LIMIT 1

-- name: entries
-- A range of a run's entries; small ones come along.
SELECT n.run_seq, n.recorded_at, n.entry_hash, b.media_type, b.byte_length,
       CASE WHEN b.byte_length <= :carried_bytes THEN b.content END
FROM session_entries AS n
CROSS JOIN blobs AS b ON b.blob_hash = n.entry_hash
WHERE n.run_id = :run_id AND n.run_seq > :after AND n.run_seq <= :through
ORDER BY n.run_seq

-- name: events
-- A range of a run's session events; small payloads come along.
SELECT e.run_seq, e.recorded_at, e.node_id, e.attempt_id, e.turn_id, e.message_id, e.tool_call_id, e.event_type,
       e.payload_hash, b.media_type, b.byte_length, CASE WHEN b.byte_length <= :carried_bytes THEN b.content END
FROM session_events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.run_id = :run_id AND e.run_seq > :after AND e.run_seq <= :through
ORDER BY e.run_seq
