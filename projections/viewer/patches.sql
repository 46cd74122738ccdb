-- name: is_captured
-- Whether a run has a capture.
SELECT 1 FROM session_segments WHERE run_id = :run_id LIMIT 1

-- name: event_bytes
-- About how much the items of session events take: what they say, and what they are called.
SELECT sum(
    b.byte_length + octet_length(e.event_type) + coalesce(octet_length(e.node_id), 0)
    + coalesce(octet_length(e.attempt_id), 0) + coalesce(octet_length(e.turn_id), 0)
    + coalesce(octet_length(e.message_id), 0) + coalesce(octet_length(e.tool_call_id), 0) + :item_bytes)
FROM session_events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.run_id = :run_id AND e.run_seq > :after AND e.run_seq <= :through
