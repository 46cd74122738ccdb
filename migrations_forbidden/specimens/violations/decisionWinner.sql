-- Two answers are said to have won a decision.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

-- with: decision
INSERT INTO human_decision_resolutions (
    decision_id, outcome, provenance, response_hash, reason, request_digest, resolved_at)
VALUES (
    'x', 'accepted', 'human', (SELECT digest FROM value), NULL,
    zeroblob(32), 1);
INSERT INTO human_decision_submissions (
    decision_id, attempt_id, source, candidate_hash, outcome, submitted_at)
VALUES ('x', 'one', 'human', (SELECT digest FROM value), 'won', 1);
INSERT INTO human_decision_submissions (
    decision_id, attempt_id, source, candidate_hash, outcome, submitted_at)
VALUES ('x', 'two', 'human', (SELECT digest FROM value), 'won', 1);
