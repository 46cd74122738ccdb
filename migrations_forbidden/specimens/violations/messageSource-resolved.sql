-- A message still shows a decision that was made.
-- also: terminalWork

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

-- with: decision
INSERT INTO human_decision_resolutions (
    decision_id, outcome, provenance, response_hash, reason, request_digest, resolved_at)
VALUES (
    'x', 'cancelled', 'explicit_cancel', NULL, 'expired',
    zeroblob(32), 1);
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM victim), 's', 'decision',
    'x', (SELECT digest FROM value),
    1, 'pending', NULL, NULL, 1, 1, 'message-first');
