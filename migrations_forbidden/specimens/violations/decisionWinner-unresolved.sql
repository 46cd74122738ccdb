-- An answer won a decision that nothing resolved.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

-- with: decision
INSERT INTO human_decision_submissions (
    decision_id, attempt_id, source, candidate_hash, outcome, submitted_at)
VALUES ('x', 'one', 'human', (SELECT digest FROM value), 'won', 1);
