-- name: insert_effect
INSERT INTO effects (
    effect_id, resource_id, source_resource_id, source_revision, effect_type, idempotency_key, payload_hash,
    owner_scope, status, attempt_count, next_attempt_at, result_hash, external_ref, error_hash, created_at, updated_at,
    settled_at)
VALUES (
    :effect_id, :resource_id, :source_resource_id, :source_revision, :effect_type, :idempotency_key,
    unhex(:payload_hash), :owner_scope, :status, :attempt_count, :next_attempt_at, unhex(:result_hash), :external_ref,
    unhex(:error_hash), :created_at, :updated_at, :settled_at)

-- name: change_effect
UPDATE effects
SET status = :status, attempt_count = :attempt_count, next_attempt_at = :next_attempt_at,
    result_hash = unhex(:result_hash), external_ref = :external_ref, error_hash = unhex(:error_hash),
    settled_at = :settled_at, updated_at = :at_ms
WHERE effect_id = :effect_id

-- name: insert_try
INSERT INTO effect_attempts (effect_id, attempt_number, owner_id, lease_generation, started_at)
VALUES (:effect_id, :attempt_number, :owner_id, :lease_generation, :started_at)

-- name: finish_try
UPDATE effect_attempts
SET finished_at = :finished_at, outcome = :outcome, result_hash = unhex(:result_hash), error_hash = unhex(:error_hash)
WHERE effect_id = :effect_id AND attempt_number = :attempt_number AND finished_at IS NULL
