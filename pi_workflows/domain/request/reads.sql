-- What decisions about questions and answers read.

-- name: submission_known
-- Whether an answer of this name was given, to whatever question.
SELECT submission_id FROM interactive_submissions WHERE submission_id = :submission_id

-- name: asked
-- A question and the answer that won, if one did.
SELECT q.request_id, q.run_id, q.attempt_id, a.node_id, q.target_session_id, q.kind, q.revision, q.status,
       q.accepted_submission_id, q.settled_at, q.contract_hash, s.payload_hash
FROM interactive_requests AS q
JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
LEFT JOIN interactive_submissions AS s ON s.submission_id = q.accepted_submission_id
WHERE q.request_id = :request_id

-- name: closed_with
-- Why the attempt of a question did not end well, or goes on waiting for its end.
SELECT a.error_hash
FROM interactive_requests AS q
JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
WHERE q.request_id = :request_id AND a.error_hash IS NOT NULL

-- name: submission
-- One answer.
SELECT submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, receipt_hash
FROM interactive_submissions WHERE submission_id = :submission_id

-- name: submission_by_key
-- The answer that was given to a question under a key.
SELECT submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, receipt_hash
FROM interactive_submissions WHERE request_id = :request_id AND idempotency_key = :idempotency_key

-- name: validating
-- The one answer of a question that is being judged. A question has as many answers as were tried.
SELECT submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, receipt_hash
FROM interactive_submissions WHERE request_id = :request_id AND outcome = 'validating'

-- name: intervals
-- The number of the attempt's newest active interval and the time of those that ended.
SELECT coalesce(max(interval_number), 0), coalesce(sum(elapsed_ms) FILTER (WHERE ended_at IS NOT NULL), 0)
FROM attempt_active_intervals WHERE attempt_id = :attempt_id
