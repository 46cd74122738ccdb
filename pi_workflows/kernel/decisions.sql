-- name: decisions
-- Every decision with all that its request names; of one whose attempt is gone the node is nothing.
SELECT d.request_digest, d.request_hash, d.decision_id, d.run_id, coalesce(a.node_id, ''), coalesce(a.visit_number, 0),
       d.attempt_id, d.title, d.audience, d.presentation_revision, lower(hex(d.subject_hash)),
       lower(hex(d.presentation_hash)), lower(hex(d.choices_hash)), d.deadline_at,
       CASE WHEN d.default_response_hash IS NOT NULL THEN lower(hex(d.default_response_hash)) END
FROM human_decisions AS d
LEFT JOIN node_attempts AS a ON a.attempt_id = d.attempt_id
