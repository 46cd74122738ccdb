-- name: insert_attempt
INSERT INTO node_attempts (
    attempt_id, run_id, node_id, visit_number, attempt_number, node_type, status, prompt_hash, output_hash,
    receipt_hash, error_hash, settings_scope_id, settings_change_number, settings_hash, started_at, timeout_ms,
    finished_at, created_at, updated_at)
VALUES (
    :attempt_id, :run_id, :node_id, :visit_number, :attempt_number, :node_type, :status, unhex(:prompt_hash),
    unhex(:output_hash), unhex(:receipt_hash), unhex(:error_hash), :settings_scope_id, :settings_change_number,
    unhex(:settings_hash), :started_at, :timeout_ms, :finished_at, :created_at, :updated_at)

-- name: open_interval
INSERT INTO attempt_active_intervals (attempt_id, interval_number, started_at, observed_at, ended_at, elapsed_ms)
VALUES (:attempt_id, :interval_number, :started_at, :observed_at, :ended_at, :elapsed_ms)

-- name: change_attempt
UPDATE node_attempts
SET status = :status, output_hash = unhex(:output_hash), receipt_hash = unhex(:receipt_hash),
    error_hash = unhex(:error_hash), finished_at = :finished_at, updated_at = :at_ms
WHERE attempt_id = :attempt_id

-- name: close_interval
-- The last observation of a closed interval is its end.
UPDATE attempt_active_intervals
SET observed_at = :ended_at, ended_at = :ended_at, elapsed_ms = :elapsed_ms
WHERE attempt_id = :attempt_id AND interval_number = :interval_number AND ended_at IS NULL

-- name: insert_step
INSERT INTO run_steps (run_id, step_index, attempt_id) VALUES (:run_id, :step_index, :attempt_id)

-- name: link_entry
INSERT INTO attempt_entries (attempt_id, role, segment_id, entry_id)
VALUES (:attempt_id, :role, :segment_id, :entry_id)
