-- A decision is resolved, and its question is still open.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

-- with: decision
INSERT INTO human_decision_resolutions (
    decision_id, outcome, provenance, response_hash, reason, request_digest, resolved_at)
VALUES (
    'x', 'cancelled', 'explicit_cancel', NULL, 'expired',
    zeroblob(32), 1);
