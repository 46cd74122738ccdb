-- name: insert_follow_up
INSERT INTO workflow_follow_ups (
    follow_up_id, resource_id, run_id, request_id, order_number, target_session_id, actor_type, actor_id, source_type,
    prompt_hash, status, reason_hash, created_at, updated_at)
VALUES (
    :follow_up_id, :resource_id, :run_id, :request_id, :order_number, :target_session_id, :actor_type, :actor_id,
    :source_type, unhex(:prompt_hash), :status, unhex(:reason_hash), :created_at, :updated_at)

-- name: end_follow_up
-- Only a waiting one ends.
UPDATE workflow_follow_ups SET status = :status, reason_hash = unhex(:reason_hash), updated_at = :at_ms
WHERE follow_up_id = :follow_up_id AND status = 'queued'
