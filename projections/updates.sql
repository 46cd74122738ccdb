-- name: insert_update
INSERT INTO workflow_updates (
    update_id, run_id, attempt_id, update_seq, run_revision, update_type, update_key, data_hash, recorded_at)
VALUES (
    :update_id, :run_id, :attempt_id, :update_seq, :run_revision, :update_type, :update_key, unhex(:data_hash), :recorded_at)
