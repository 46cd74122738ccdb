-- name: decision
-- What a person is asked by an attempt, and how that was resolved; nobody is named.
SELECT d.decision_id, d.title, d.audience, d.presentation_revision, d.created_at, d.deadline_at, d.request_digest,
       d.choices_hash, d.default_response_hash, r.outcome, r.provenance, r.response_hash, r.reason, r.resolved_at,
       d.presentation_hash, p.media_type, p.byte_length, CASE WHEN p.byte_length <= :carried_bytes THEN p.content END
FROM human_decisions AS d
CROSS JOIN blobs AS p ON p.blob_hash = d.presentation_hash
LEFT JOIN human_decision_resolutions AS r ON r.decision_id = d.decision_id
WHERE d.attempt_id = :attempt_id

-- name: deadline_of
-- The deadline of what one run asks a person now.
SELECT d.decision_id, d.run_id, d.deadline_at
FROM interactive_requests AS q
CROSS JOIN human_decisions AS d ON d.attempt_id = q.attempt_id
WHERE q.run_id = :run_id AND q.status = 'pending' AND q.kind = 'decision' AND d.deadline_at IS NOT NULL

-- name: deadlines
-- Decisions that nobody made yet and that have a deadline, the next one first. There are at most as many as runs that
-- wait, which a partial index knows.
SELECT d.decision_id, d.run_id, d.deadline_at
FROM interactive_requests AS q
CROSS JOIN human_decisions AS d ON d.attempt_id = q.attempt_id
WHERE q.status = 'pending' AND q.kind = 'decision' AND d.deadline_at IS NOT NULL
ORDER BY d.deadline_at, d.decision_id
LIMIT :limit
