-- name: insert_request
INSERT INTO interactive_requests (
    request_id, run_id, attempt_id, target_session_id, kind, contract_hash, revision, status, accepted_submission_id,
    created_at, updated_at, settled_at, consumed_at)
VALUES (
    :request_id, :run_id, :attempt_id, :target_session_id, :kind, unhex(:contract_hash), :revision, :status,
    :accepted_submission_id, :created_at, :updated_at, :settled_at, :consumed_at)

-- name: change_request
UPDATE interactive_requests
SET revision = :revision, status = :status, accepted_submission_id = :accepted_submission_id,
    settled_at = :settled_at, consumed_at = :consumed_at, updated_at = :at_ms
WHERE request_id = :request_id

-- name: insert_submission
INSERT INTO interactive_submissions (
    submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, receipt_hash, submitted_at)
VALUES (
    :submission_id, :request_id, :idempotency_key, :request_revision, unhex(:payload_hash), :outcome,
    unhex(:receipt_hash), :submitted_at)

-- name: change_submission
UPDATE interactive_submissions SET outcome = :outcome, receipt_hash = unhex(:receipt_hash)
WHERE submission_id = :submission_id AND outcome = 'validating'
