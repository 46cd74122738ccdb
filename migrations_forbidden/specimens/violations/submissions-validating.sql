-- Two answers to a question are looked at.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

INSERT INTO interactive_submissions (
    submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, submitted_at)
SELECT 'one', request_id, 'one', 1,
       (SELECT digest FROM value), 'validating', 1
FROM victim;
INSERT INTO interactive_submissions (
    submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, submitted_at)
SELECT 'two', request_id, 'two', 1,
       (SELECT digest FROM value), 'validating', 1
FROM victim;
