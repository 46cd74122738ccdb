-- name: run_state
-- What a decision about a run depends on, in one row.
SELECT r.run_id, r.resource_id, s.revision, r.status, r.paused, r.status_detail, r.final_output_hash, r.error_hash,
       d.definition_hash, r.root_run_id, r.restart_number,
       q.status, q.available_at, q.consecutive_errors, q.error_code, q.error_hash, q.started_at, q.finished_at,
       l.generation, l.owner_type, l.owner_id, l.expires_at,
       b.origin_session_id, b.execution_mode
FROM runs AS r
JOIN resources AS s ON s.resource_id = r.resource_id
JOIN leases AS l ON l.resource_id = r.resource_id
JOIN workflow_definitions AS d ON d.definition_digest = r.definition_digest
JOIN run_queue AS q ON q.run_id = r.run_id
JOIN run_bindings AS b ON b.run_id = r.run_id
WHERE r.run_id = :run_id

-- name: open_attempt
-- The one attempt that has not ended, with its open interval if it has one. The partial index names these statuses.
SELECT a.attempt_id, a.node_id, a.visit_number, a.attempt_number, a.node_type, a.status, a.timeout_ms,
       i.interval_number, i.observed_at, i.elapsed_ms, a.error_hash
FROM node_attempts AS a
LEFT JOIN attempt_active_intervals AS i ON i.attempt_id = a.attempt_id AND i.ended_at IS NULL
WHERE a.run_id = :run_id AND a.status IN ('pending', 'running', 'waiting')

-- name: left_attempt
-- The attempt that lost its runner and that no other one followed. The nodes are walked through the unique index, one
-- lookup each, so that a long history costs nothing.
WITH RECURSIVE nodes (node_id) AS (
    SELECT (SELECT a.node_id FROM node_attempts AS a WHERE a.run_id = :run_id ORDER BY a.node_id LIMIT 1)
    UNION ALL
    SELECT (SELECT a.node_id FROM node_attempts AS a
            WHERE a.run_id = :run_id AND a.node_id > n.node_id ORDER BY a.node_id LIMIT 1)
    FROM nodes AS n WHERE n.node_id IS NOT NULL)
SELECT a.attempt_id
FROM nodes AS n
JOIN node_attempts AS a ON a.run_id = :run_id AND a.node_id = n.node_id AND a.attempt_number = (
    SELECT m.attempt_number FROM node_attempts AS m
    WHERE m.run_id = :run_id AND m.node_id = n.node_id ORDER BY m.attempt_number DESC LIMIT 1)
WHERE a.status = 'interrupted'

-- name: last_step
-- The newest settled attempt: where the route goes on from.
SELECT s.step_index, a.attempt_id, a.node_id, a.visit_number, a.attempt_number, a.status, a.output_hash, a.error_hash,
       a.finished_at
FROM run_steps AS s
JOIN node_attempts AS a ON a.attempt_id = s.attempt_id
WHERE s.run_id = :run_id
ORDER BY s.step_index DESC
LIMIT 1

-- name: last_of_node
-- The newest attempt of one node.
SELECT attempt_id, node_id, visit_number, attempt_number, node_type, status
FROM node_attempts
WHERE run_id = :run_id AND node_id = :node_id
ORDER BY attempt_number DESC
LIMIT 1

-- name: visit_tries
-- How many attempts of a node's newest visit have settled. Visits stand in attempt order, so only this visit is read.
SELECT count(*)
FROM node_attempts
WHERE run_id = :run_id AND node_id = :node_id AND status IN ('completed', 'failed', 'timed_out')
  AND attempt_number > coalesce(
      (SELECT attempt_number FROM node_attempts
       WHERE run_id = :run_id AND node_id = :node_id AND visit_number < :visit_number
       ORDER BY attempt_number DESC LIMIT 1), 0)

-- name: pending_request
-- The one question that the run waits for an answer to.
SELECT request_id, attempt_id, kind, revision, status
FROM interactive_requests
WHERE run_id = :run_id AND status = 'pending'

-- name: request_of_attempt
-- The question that an attempt asked and what a runner takes as its answer: of a model's candidate what the workflow's
-- own code made of it, which is its receipt.
SELECT q.request_id, q.revision, q.status, q.accepted_submission_id, q.settled_at,
       CASE q.kind WHEN 'agent' THEN s.receipt_hash ELSE s.payload_hash END
FROM interactive_requests AS q
LEFT JOIN interactive_submissions AS s ON s.submission_id = q.accepted_submission_id
WHERE q.attempt_id = :attempt_id

-- name: run_identity
-- What "the same run" means when a start is repeated.
SELECT r.run_id, r.status, s.revision, r.definition_digest, r.input_hash, p.canonical_path,
       b.execution_mode, b.origin_session_id
FROM runs AS r
JOIN resources AS s ON s.resource_id = r.resource_id
JOIN run_bindings AS b ON b.run_id = r.run_id
LEFT JOIN projects AS p ON p.project_id = r.project_id
WHERE r.run_id = :run_id

-- name: session_run
-- The interactive run that reserves a session.
SELECT run_id FROM run_queue
WHERE origin_session_id = :session_id AND status IN ('queued', 'starting', 'running', 'parked')

-- name: project_created
-- When a project row was made; a repeated row keeps its time.
SELECT created_at FROM projects WHERE project_id = :project_id

-- name: definition_created
-- When a definition row was made; a repeated row keeps its time.
SELECT created_at FROM workflow_definitions WHERE definition_digest = :definition_digest

-- name: restart_origin
-- What a restart copies from its parent.
SELECT r.run_id, r.project_id, p.canonical_path, p.created_at, r.root_run_id, r.restart_number,
       d.definition_digest, d.workflow_name, d.definition_hash, d.created_at,
       r.workflow_ref, r.launch_options_hash, r.title, r.input_hash, b.execution_mode, b.origin_session_id
FROM runs AS r
JOIN projects AS p ON p.project_id = r.project_id
JOIN workflow_definitions AS d ON d.definition_digest = r.definition_digest
JOIN run_bindings AS b ON b.run_id = r.run_id
WHERE r.run_id = :run_id

-- name: run_sources
-- Source identities of a run, root first.
SELECT mount_path, source_type, source_ref, source_revision
FROM run_sources WHERE run_id = :run_id ORDER BY mount_path

-- name: restart_child
-- The run that already restarted this one.
SELECT run_id FROM runs WHERE parent_run_id = :run_id AND lineage_kind = 'restart'
