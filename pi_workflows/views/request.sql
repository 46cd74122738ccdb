-- name: request
-- A question with its contract.
SELECT q.request_id, q.run_id, q.attempt_id, a.node_id, q.target_session_id, q.kind, q.revision,
       q.status, q.accepted_submission_id, q.created_at, q.updated_at, q.settled_at, q.consumed_at,
       q.contract_hash, c.media_type, c.byte_length,
       CASE WHEN c.byte_length <= :carried_bytes THEN c.content END
FROM interactive_requests AS q
CROSS JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
CROSS JOIN blobs AS c ON c.blob_hash = q.contract_hash
WHERE q.request_id = :request_id
