-- name: submission
-- Whether an answer of this name was given, to whatever question.
SELECT submission_id FROM interactive_submissions WHERE submission_id = :submission_id

-- name: asked
-- A question and the answer that won, if one did.
SELECT q.request_id, q.run_id, q.attempt_id, a.node_id, q.kind, q.revision, q.status, q.accepted_submission_id,
       q.contract_hash, s.payload_hash
FROM interactive_requests AS q
JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
LEFT JOIN interactive_submissions AS s ON s.submission_id = q.accepted_submission_id
WHERE q.request_id = :request_id
