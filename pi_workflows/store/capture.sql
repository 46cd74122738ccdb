-- name: append_entry
INSERT INTO session_entries (
    segment_id, run_id, entry_seq, run_seq, entry_id, entry_hash, presentation_revision, recorded_at)
VALUES (:segment_id, :run_id, :entry_seq, :run_seq, :entry_id, :entry_hash, :presentation_revision, :recorded_at)

-- name: append_event
INSERT INTO session_events (
    segment_id, run_id, event_seq, run_seq, event_type, node_id, attempt_id, turn_id, message_id, tool_call_id,
    payload_hash, presentation_revision, recorded_at)
VALUES (
    :segment_id, :run_id, :event_seq, :run_seq, :event_type, :node_id, :attempt_id, :turn_id, :message_id,
    :tool_call_id, :payload_hash, :presentation_revision, :recorded_at)
