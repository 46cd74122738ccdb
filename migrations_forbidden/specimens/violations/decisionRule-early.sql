-- A decision was resolved by its default before its deadline.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'settled' ORDER BY run_id, request_id LIMIT 1;

UPDATE interactive_requests SET kind = 'decision'
WHERE request_id = (SELECT request_id FROM victim);
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('decision-x', 'decision', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('decision-x', 0);
INSERT INTO human_decisions (
    decision_id, resource_id, run_id, attempt_id, audience, title, subject_hash, presentation_hash, choices_hash,
    request_digest, presentation_revision, deadline_at, default_response_hash, request_hash, created_at)
SELECT 'x', 'decision-x', q.run_id, q.attempt_id, 'operator', 'Go on?', b.digest, b.digest, b.digest,
       zeroblob(32), 1, 2, b.digest, b.digest, 1
FROM interactive_requests AS q JOIN value AS b
WHERE q.request_id = (SELECT request_id FROM victim);
INSERT INTO human_decision_resolutions (
    decision_id, outcome, provenance, response_hash, reason, request_digest, resolved_at)
VALUES (
    'x', 'accepted', 'timeout_policy', (SELECT digest FROM value), NULL,
    zeroblob(32), 1);
