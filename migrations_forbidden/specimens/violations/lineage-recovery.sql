-- A run that recovers from another is said to be of its tree.

CREATE TEMP TABLE victim AS
SELECT r.run_id, o.run_id AS other, o.resource_id
FROM runs AS r JOIN runs AS o ON o.run_id <> r.run_id
WHERE r.parent_run_id IS NULL AND o.parent_run_id IS NULL AND r.status = 'completed' AND o.status = 'failed'
ORDER BY r.run_id LIMIT 1;

INSERT INTO resources
SELECT 'message-told', 'message', 'told', 0, 1, 1;
INSERT INTO leases (resource_id) VALUES ('message-told');
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status, created_at,
    updated_at, resource_id)
SELECT 'told', v.other, 's', 'terminal', v.other, r.input_hash, 1, 'pending', 1, 1, 'message-told'
FROM victim AS v JOIN runs AS r ON r.run_id = v.other;
UPDATE runs
SET recovery_root_run_id = (SELECT other FROM victim), recovery_source_message_id = 'told',
    root_run_id = (SELECT other FROM victim)
WHERE run_id = (SELECT run_id FROM victim);
