-- A resolution is one of another request.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

-- with: decision
INSERT INTO human_decision_resolutions (
    decision_id, outcome, provenance, response_hash, reason, request_digest, resolved_at)
VALUES (
    'x', 'cancelled', 'explicit_cancel', NULL, 'expired',
    CAST(printf('%032d', 1) AS BLOB), 1);
