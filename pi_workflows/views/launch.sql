-- name: launch
-- What a launch of a run begins with.
SELECT r.run_id, r.resource_id, s.revision, p.canonical_path, r.definition_digest,
       d.definition_hash, r.launch_options_hash, b.execution_mode, r.lineage_kind, q.started_at,
       r.input_hash, i.media_type, i.byte_length,
       CASE WHEN i.byte_length <= :carried_bytes THEN i.content END
FROM runs AS r
CROSS JOIN resources AS s ON s.resource_id = r.resource_id
CROSS JOIN workflow_definitions AS d ON d.definition_digest = r.definition_digest
CROSS JOIN run_queue AS q ON q.run_id = r.run_id
CROSS JOIN run_bindings AS b ON b.run_id = r.run_id
CROSS JOIN projects AS p ON p.project_id = r.project_id
CROSS JOIN blobs AS i ON i.blob_hash = r.input_hash
WHERE r.run_id = :run_id

-- name: sources
-- Where the definition and each of its mounts come from, root first.
SELECT mount_path, source_type, source_ref, source_revision
FROM run_sources WHERE run_id = :run_id ORDER BY mount_path

-- name: answered
-- The accepted answer that an open attempt waits to end with; it is consumed when the attempt ends.
-- Of a model's candidate it is what the workflow's own code made of it.
SELECT a.attempt_id, a.node_id, a.visit_number, q.request_id,
       b.blob_hash, b.media_type, b.byte_length,
       CASE WHEN b.byte_length <= :carried_bytes THEN b.content END
FROM node_attempts AS a
CROSS JOIN interactive_requests AS q ON q.attempt_id = a.attempt_id
CROSS JOIN interactive_submissions AS s ON s.submission_id = q.accepted_submission_id
CROSS JOIN blobs AS b
    ON b.blob_hash = CASE q.kind WHEN 'agent' THEN s.receipt_hash ELSE s.payload_hash END
WHERE a.run_id = :run_id AND a.status IN ('pending', 'running', 'waiting')

-- name: closed
-- An open attempt whose question closed without an answer, and why.
SELECT a.attempt_id, a.node_id, a.visit_number, q.request_id, a.error_hash
FROM node_attempts AS a
CROSS JOIN interactive_requests AS q ON q.attempt_id = a.attempt_id
WHERE a.run_id = :run_id AND a.status IN ('pending', 'running', 'waiting')
  AND q.status = 'cancelled' AND a.error_hash IS NOT NULL
