-- name: run_facts
-- What every view of a run begins with, for each run asked for, in the order of the question. No
-- body is read. The open attempt is the one that the partial index knows; its request is pending,
-- or answered and not yet consumed. The ambiguous effects of all runs, few as they are, are
-- looked up once.
SELECT r.run_id, r.resource_id, s.revision, v.presentation_revision,
       v.retained_from_revision, r.status, r.paused,
       r.status_detail, r.title, r.workflow_ref, r.definition_digest, d.definition_hash,
       d.workflow_name, r.project_id, p.canonical_path, r.parent_run_id, r.root_run_id,
       r.lineage_kind, r.restart_number, r.parent_run_revision, r.created_at, s.updated_at,
       r.finished_at, r.input_hash, r.final_output_hash, r.error_hash,
       q.status, q.error_code, q.error_hash, q.origin_session_id, q.created_at, q.updated_at,
       q.started_at, q.finished_at,
       b.origin_session_id, b.execution_mode, c.source_type, c.source_ref, c.source_revision,
       l.owner_type, l.expires_at,
       a.attempt_id, a.node_id, a.visit_number, a.status,
       i.request_id, i.kind, i.status, i.consumed_at,
       r.resource_id IN (
           SELECT e.source_resource_id FROM effects AS e INDEXED BY effects_status
           WHERE e.status = 'ambiguous'),
       EXISTS (
           SELECT 1 FROM workflow_turns AS t
           CROSS JOIN workflow_messages AS m ON m.workflow_message_id = t.workflow_message_id
           WHERE t.target_session_id = b.origin_session_id AND t.state = 'started'
             AND t.run_id = r.run_id AND m.kind IN ('step', 'terminal')),
       (SELECT m.status FROM workflow_messages AS m
        WHERE m.kind = 'step' AND m.source_id = i.request_id
        ORDER BY m.order_number DESC LIMIT 1)
FROM json_each(:run_ids) AS asked
CROSS JOIN runs AS r ON r.run_id = asked.value
CROSS JOIN resources AS s ON s.resource_id = r.resource_id
CROSS JOIN viewer_runs AS v ON v.run_id = r.run_id
CROSS JOIN workflow_definitions AS d ON d.definition_digest = r.definition_digest
CROSS JOIN run_queue AS q ON q.run_id = r.run_id
CROSS JOIN run_bindings AS b ON b.run_id = r.run_id
CROSS JOIN run_sources AS c ON c.run_id = r.run_id AND c.mount_path = ''
CROSS JOIN leases AS l ON l.resource_id = r.resource_id
LEFT JOIN projects AS p ON p.project_id = r.project_id
LEFT JOIN node_attempts AS a
    ON a.run_id = r.run_id AND a.status IN ('pending', 'running', 'waiting')
LEFT JOIN interactive_requests AS i ON i.attempt_id = a.attempt_id
ORDER BY asked.key
