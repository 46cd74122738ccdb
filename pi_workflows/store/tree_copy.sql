-- A root tree of another database of the same schema, which is attached as `source`: its rows as they stand there, table
-- by table. One digest made both schemas, so that `*` is the same columns on both sides. What belongs to live processes
-- stays behind: who held a claim, which server was up.

-- name: projects
INSERT INTO main.projects
SELECT * FROM source.projects
WHERE project_id IN (SELECT project_id FROM source.runs WHERE run_id IN (SELECT value FROM json_each(:run_ids)))

-- name: workflow_definitions
INSERT INTO main.workflow_definitions
SELECT * FROM source.workflow_definitions
WHERE definition_digest IN (SELECT definition_digest FROM source.runs WHERE run_id IN (SELECT value FROM json_each(:run_ids)))

-- name: resources
INSERT INTO main.resources
SELECT * FROM source.resources WHERE resource_id IN (SELECT value FROM json_each(:resource_ids))

-- name: leases
INSERT INTO main.leases (resource_id, generation)
SELECT resource_id, generation FROM source.leases WHERE resource_id IN (SELECT value FROM json_each(:resource_ids))

-- name: events
INSERT INTO main.events
SELECT * FROM source.events WHERE resource_id IN (SELECT value FROM json_each(:resource_ids)) ORDER BY event_seq

-- name: event_blobs
INSERT INTO main.event_blobs
SELECT * FROM source.event_blobs WHERE event_seq IN (SELECT event_seq FROM main.events)

-- name: runs
INSERT INTO main.runs SELECT * FROM source.runs WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: run_sources
INSERT INTO main.run_sources SELECT * FROM source.run_sources WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: run_bindings
INSERT INTO main.run_bindings
SELECT * FROM source.run_bindings WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: run_queue
INSERT INTO main.run_queue SELECT * FROM source.run_queue WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: node_attempts
INSERT INTO main.node_attempts
SELECT * FROM source.node_attempts WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: attempt_active_intervals
INSERT INTO main.attempt_active_intervals
SELECT * FROM source.attempt_active_intervals WHERE attempt_id IN (SELECT attempt_id FROM main.node_attempts)

-- name: run_steps
INSERT INTO main.run_steps SELECT * FROM source.run_steps WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: workflow_updates
INSERT INTO main.workflow_updates
SELECT * FROM source.workflow_updates WHERE attempt_id IN (SELECT attempt_id FROM main.node_attempts)

-- name: interactive_requests
INSERT INTO main.interactive_requests
SELECT * FROM source.interactive_requests WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: interactive_submissions
INSERT INTO main.interactive_submissions
SELECT * FROM source.interactive_submissions WHERE request_id IN (SELECT request_id FROM main.interactive_requests)

-- name: workflow_settings
INSERT INTO main.workflow_settings
SELECT * FROM source.workflow_settings WHERE origin_run_id IN (SELECT value FROM json_each(:run_ids))

-- name: workflow_setting_changes
INSERT INTO main.workflow_setting_changes
SELECT * FROM source.workflow_setting_changes WHERE scope_id IN (SELECT scope_id FROM main.workflow_settings)

-- name: workflow_follow_ups
INSERT INTO main.workflow_follow_ups
SELECT * FROM source.workflow_follow_ups WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: session_segments
INSERT INTO main.session_segments
SELECT * FROM source.session_segments WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: session_entries
INSERT INTO main.session_entries
SELECT * FROM source.session_entries WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: session_events
INSERT INTO main.session_events
SELECT * FROM source.session_events WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: attempt_entries
INSERT INTO main.attempt_entries
SELECT * FROM source.attempt_entries WHERE attempt_id IN (SELECT attempt_id FROM main.node_attempts)

-- name: human_decisions
INSERT INTO main.human_decisions
SELECT * FROM source.human_decisions WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: human_decision_resolutions
INSERT INTO main.human_decision_resolutions
SELECT * FROM source.human_decision_resolutions WHERE decision_id IN (SELECT decision_id FROM main.human_decisions)

-- name: human_decision_submissions
INSERT INTO main.human_decision_submissions
SELECT * FROM source.human_decision_submissions WHERE decision_id IN (SELECT decision_id FROM main.human_decisions)

-- name: effects
INSERT INTO main.effects
SELECT * FROM source.effects WHERE resource_id IN (SELECT value FROM json_each(:resource_ids))

-- name: effect_attempts
INSERT INTO main.effect_attempts
SELECT * FROM source.effect_attempts WHERE effect_id IN (SELECT effect_id FROM main.effects)

-- name: workflow_messages
INSERT INTO main.workflow_messages
SELECT * FROM source.workflow_messages WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: workflow_turns
INSERT INTO main.workflow_turns
SELECT * FROM source.workflow_turns WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: viewer_runs
INSERT INTO main.viewer_runs SELECT * FROM source.viewer_runs WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: viewer_deltas
INSERT INTO main.viewer_deltas
SELECT * FROM source.viewer_deltas WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: viewer_session_checkpoints
INSERT INTO main.viewer_session_checkpoints
SELECT * FROM source.viewer_session_checkpoints WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: run_view_content
INSERT INTO main.run_view_content
SELECT * FROM source.run_view_content WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: host_commands
INSERT INTO main.host_commands
SELECT * FROM source.host_commands WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: run_workers
INSERT INTO main.run_workers SELECT * FROM source.run_workers WHERE run_id IN (SELECT value FROM json_each(:run_ids))

-- name: worker_messages
INSERT INTO main.worker_messages
SELECT * FROM source.worker_messages WHERE worker_epoch IN (SELECT worker_epoch FROM main.run_workers)

-- name: blobs
-- Every value that a copied row names, by every foreign key that the schema has.
INSERT INTO main.blobs
SELECT * FROM source.blobs WHERE blob_hash IN (
    SELECT error_hash FROM main.effect_attempts
    UNION SELECT result_hash FROM main.effect_attempts
    UNION SELECT error_hash FROM main.effects
    UNION SELECT payload_hash FROM main.effects
    UNION SELECT result_hash FROM main.effects
    UNION SELECT blob_hash FROM main.event_blobs
    UNION SELECT payload_hash FROM main.events
    UNION SELECT error_hash FROM main.host_commands
    UNION SELECT receipt_hash FROM main.host_commands
    UNION SELECT response_hash FROM main.human_decision_resolutions
    UNION SELECT candidate_hash FROM main.human_decision_submissions
    UNION SELECT result_hash FROM main.human_decision_submissions
    UNION SELECT choices_hash FROM main.human_decisions
    UNION SELECT default_response_hash FROM main.human_decisions
    UNION SELECT presentation_hash FROM main.human_decisions
    UNION SELECT request_hash FROM main.human_decisions
    UNION SELECT subject_hash FROM main.human_decisions
    UNION SELECT contract_hash FROM main.interactive_requests
    UNION SELECT payload_hash FROM main.interactive_submissions
    UNION SELECT receipt_hash FROM main.interactive_submissions
    UNION SELECT error_hash FROM main.node_attempts
    UNION SELECT output_hash FROM main.node_attempts
    UNION SELECT prompt_hash FROM main.node_attempts
    UNION SELECT receipt_hash FROM main.node_attempts
    UNION SELECT settings_hash FROM main.node_attempts
    UNION SELECT error_hash FROM main.run_queue
    UNION SELECT diagnostic_hash FROM main.run_workers
    UNION SELECT launch_envelope_hash FROM main.run_workers
    UNION SELECT error_hash FROM main.runs
    UNION SELECT final_output_hash FROM main.runs
    UNION SELECT input_hash FROM main.runs
    UNION SELECT launch_options_hash FROM main.runs
    UNION SELECT entry_hash FROM main.session_entries
    UNION SELECT payload_hash FROM main.session_events
    UNION SELECT binding_hash FROM main.session_segments
    UNION SELECT failure_hash FROM main.session_segments
    UNION SELECT patch_hash FROM main.viewer_deltas
    UNION SELECT state_hash FROM main.viewer_session_checkpoints
    UNION SELECT error_hash FROM main.worker_messages
    UNION SELECT result_hash FROM main.worker_messages
    UNION SELECT definition_hash FROM main.workflow_definitions
    UNION SELECT prompt_hash FROM main.workflow_follow_ups
    UNION SELECT reason_hash FROM main.workflow_follow_ups
    UNION SELECT content_hash FROM main.workflow_messages
    UNION SELECT after_hash FROM main.workflow_setting_changes
    UNION SELECT before_hash FROM main.workflow_setting_changes
    UNION SELECT patch_hash FROM main.workflow_setting_changes
    UNION SELECT current_hash FROM main.workflow_settings
    UNION SELECT initial_hash FROM main.workflow_settings
    UNION SELECT data_hash FROM main.workflow_updates
)

-- name: server_epoch
-- No stored epoch is ahead of the server's own.
UPDATE main.workflow_host_state SET epoch = coalesce((SELECT max(epoch) FROM source.workflow_host_state), 0)
