-- name: insert_checkpoint
INSERT INTO viewer_session_checkpoints (run_id, event_seq, state_hash, recorded_at)
VALUES (:run_id, :event_seq, :state_hash, :at_ms)
