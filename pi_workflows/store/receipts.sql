-- name: client_receipts
-- By the request's own number, or as a resend under another one; one row may come twice.
SELECT request_fingerprint, outcome, accepted_revision, receipt_hash, error_hash
FROM host_commands
WHERE request_id = :request_id
UNION ALL
SELECT request_fingerprint, outcome, accepted_revision, receipt_hash, error_hash
FROM host_commands
WHERE client_id = :client_id AND idempotency_key = :idempotency_key;

-- name: insert_client_receipt
INSERT INTO host_commands (
    request_id, client_id, operation, idempotency_key, request_fingerprint, run_id,
    accepted_revision, outcome, receipt_hash, error_hash, host_epoch, row_digest, created_at,
    completed_at
) VALUES (
    :request_id, :client_id, :operation, :idempotency_key, :request_fingerprint, :run_id,
    :accepted_revision, :outcome, :receipt_hash, :error_hash, :host_epoch, :row_digest, :created_at,
    :completed_at
);

-- name: worker_receipt
SELECT request_fingerprint, outcome, accepted_revision, result_hash, error_hash
FROM worker_messages
WHERE worker_epoch = :worker_epoch AND message_id = :message_id;

-- name: insert_worker_receipt
INSERT INTO worker_messages (
    worker_epoch, message_id, request_fingerprint, outcome, accepted_revision, result_hash,
    error_hash, row_digest, completed_at
) VALUES (
    :worker_epoch, :message_id, :request_fingerprint, :outcome, :accepted_revision, :result_hash,
    :error_hash, :row_digest, :completed_at
);
