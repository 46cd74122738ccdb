-- An answer to an open question is said to have been accepted.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

INSERT INTO interactive_submissions (
    submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, submitted_at)
SELECT 'forged', request_id, 'forged', 1,
       (SELECT digest FROM value), 'accepted', 1
FROM victim;
