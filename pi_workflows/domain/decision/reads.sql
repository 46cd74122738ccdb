-- What decisions about decisions read.

-- name: decision
-- A decision and how it was resolved, if it was.
SELECT d.decision_id, d.run_id, d.attempt_id, d.title, d.subject_hash, d.choices_hash, d.request_digest, d.deadline_at,
       d.default_response_hash, r.outcome, r.provenance, r.response_hash, r.reason, r.resolved_at
FROM human_decisions AS d
LEFT JOIN human_decision_resolutions AS r ON r.decision_id = d.decision_id
WHERE d.decision_id = :decision_id

-- name: newest_of_node
-- What a node asked a person last, and how that was resolved. The unique index of attempts leads there.
SELECT d.decision_id, d.run_id, d.attempt_id, d.title, d.subject_hash, d.choices_hash, d.request_digest, d.deadline_at,
       d.default_response_hash, r.outcome, r.provenance, r.response_hash, r.reason, r.resolved_at
FROM node_attempts AS a
CROSS JOIN human_decisions AS d ON d.attempt_id = a.attempt_id
LEFT JOIN human_decision_resolutions AS r ON r.decision_id = d.decision_id
WHERE a.run_id = :run_id AND a.node_id = :node_id
ORDER BY a.attempt_number DESC
LIMIT 1

-- name: candidate
-- An answer that was given before under this name.
SELECT attempt_id, source, candidate_hash, outcome
FROM human_decision_submissions
WHERE decision_id = :decision_id AND attempt_id = :submission_id

-- name: candidate_count
-- How many answers a decision got; as many as are kept, at most.
SELECT count(*) FROM (
    SELECT 1 FROM human_decision_submissions WHERE decision_id = :decision_id LIMIT :candidates_max)
