-- name: record_run
-- What a run began with and came to, with the sizes of its values.
SELECT r.run_id, d.workflow_name, r.definition_digest, c.source_revision, r.input_hash,
       i.byte_length, r.launch_options_hash, r.status, r.final_output_hash, o.byte_length
FROM runs AS r
CROSS JOIN workflow_definitions AS d ON d.definition_digest = r.definition_digest
CROSS JOIN run_sources AS c ON c.run_id = r.run_id AND c.mount_path = ''
CROSS JOIN blobs AS i ON i.blob_hash = r.input_hash
LEFT JOIN blobs AS o ON o.blob_hash = r.final_output_hash
WHERE r.run_id = :run_id

-- name: record_steps
-- The next steps of a run, with the sizes of their outputs.
SELECT t.step_index, a.node_id, a.visit_number, a.attempt_number, a.status, a.output_hash,
       o.byte_length, a.settings_scope_id, a.settings_change_number, a.settings_hash
FROM run_steps AS t
CROSS JOIN node_attempts AS a ON a.attempt_id = t.attempt_id
LEFT JOIN blobs AS o ON o.blob_hash = a.output_hash
WHERE t.run_id = :run_id AND t.step_index >= :start
ORDER BY t.step_index
LIMIT :steps_max

-- name: record_times
-- For each node of a run how often it was tried, how long it was active and how long its questions
-- waited for their answers.
SELECT a.node_id, count(*),
       coalesce(sum((SELECT sum(n.elapsed_ms) FROM attempt_active_intervals AS n
                     WHERE n.attempt_id = a.attempt_id)), 0),
       coalesce(sum((SELECT sum(q.settled_at - q.created_at) FROM interactive_requests AS q
                     WHERE q.attempt_id = a.attempt_id)), 0)
FROM node_attempts AS a
WHERE a.run_id = :run_id
GROUP BY a.node_id
