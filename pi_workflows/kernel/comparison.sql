-- Every table that the log reproduces, in key order, without the process-local columns: owner columns of leases, and
-- the last sample of what is still open. A test holds each list equal to the schema's columns.
-- The columns of the key come first: two databases are walked side by side in their order.

-- name: projects
SELECT project_id, canonical_path, created_at
FROM projects ORDER BY project_id

-- name: resources
SELECT resource_id, resource_type, aggregate_key, revision, created_at, updated_at
FROM resources ORDER BY resource_id

-- name: leases
-- Owner columns belong to live processes.
SELECT resource_id, generation
FROM leases ORDER BY resource_id

-- name: event_blobs
-- Links are derived again from each payload.
SELECT event_seq, blob_hash
FROM event_blobs ORDER BY event_seq, blob_hash

-- name: interactive_requests
SELECT request_id, run_id, attempt_id, target_session_id, kind, contract_hash, revision, status,
       accepted_submission_id, created_at, updated_at, settled_at, consumed_at
FROM interactive_requests ORDER BY request_id

-- name: interactive_submissions
SELECT submission_id, request_id, idempotency_key, request_revision, payload_hash, outcome, receipt_hash,
       submitted_at
FROM interactive_submissions ORDER BY submission_id

-- name: workflow_definitions
SELECT definition_digest, workflow_name, definition_hash, created_at
FROM workflow_definitions ORDER BY definition_digest

-- name: runs
SELECT run_id, resource_id, project_id, parent_run_id, root_run_id, recovery_root_run_id,
       recovery_source_message_id, lineage_kind, restart_number, parent_run_revision, definition_digest,
       workflow_ref, launch_options_hash, title, status, paused, status_detail, input_hash, final_output_hash,
       error_hash, created_at, updated_at, finished_at
FROM runs ORDER BY run_id

-- name: run_sources
SELECT run_id, mount_path, source_type, source_ref, source_revision
FROM run_sources ORDER BY run_id, mount_path

-- name: run_bindings
SELECT run_id, origin_session_id, execution_mode, created_at
FROM run_bindings ORDER BY run_id

-- name: run_queue
SELECT run_id, status, available_at, origin_session_id, consecutive_errors, error_code, error_hash, created_at,
       updated_at, started_at, finished_at
FROM run_queue ORDER BY run_id

-- name: node_attempts
SELECT attempt_id, run_id, node_id, visit_number, attempt_number, node_type, status, prompt_hash, output_hash,
       receipt_hash, error_hash, settings_scope_id, settings_change_number, settings_hash, started_at,
       timeout_ms, finished_at, created_at, updated_at
FROM node_attempts ORDER BY attempt_id

-- name: attempt_active_intervals
-- The last sample of an open interval is process-local.
SELECT attempt_id, interval_number, started_at, iif(ended_at IS NULL, NULL, observed_at) AS observed_at,
       ended_at, iif(ended_at IS NULL, NULL, elapsed_ms) AS elapsed_ms
FROM attempt_active_intervals ORDER BY attempt_id, interval_number

-- name: run_steps
SELECT run_id, step_index, attempt_id
FROM run_steps ORDER BY run_id, step_index

-- name: workflow_updates
SELECT update_id, run_id, attempt_id, update_seq, run_revision, update_type, update_key, data_hash, recorded_at
FROM workflow_updates ORDER BY update_id

-- name: workflow_settings
SELECT scope_id, resource_id, origin_run_id, active_run_id, mount_path, invocation, initial_hash, current_hash,
       created_at, updated_at
FROM workflow_settings ORDER BY scope_id

-- name: workflow_setting_changes
SELECT change_id, scope_id, request_id, change_number, actor_type, actor_id, source_type, patch_hash,
       before_hash, after_hash, accepted_at
FROM workflow_setting_changes ORDER BY change_id

-- name: workflow_follow_ups
SELECT follow_up_id, resource_id, run_id, request_id, order_number, target_session_id, actor_type, actor_id,
       source_type, prompt_hash, status, reason_hash, created_at, updated_at
FROM workflow_follow_ups ORDER BY follow_up_id

-- name: session_segments
SELECT segment_id, run_id, attempt_id, capture_key, session_id, resource_id, binding_hash, status, entry_count,
       event_count, entry_digest, event_digest, failure_hash, created_at, finished_at
FROM session_segments ORDER BY segment_id

-- name: attempt_entries
SELECT attempt_id, role, segment_id, entry_id
FROM attempt_entries ORDER BY attempt_id, role

-- name: human_decisions
SELECT decision_id, resource_id, run_id, attempt_id, audience, title, subject_hash, presentation_hash,
       choices_hash, request_digest, presentation_revision, deadline_at, default_response_hash, request_hash,
       created_at
FROM human_decisions ORDER BY decision_id

-- name: human_decision_resolutions
SELECT decision_id, outcome, provenance, response_hash, reason, channel, actor_id, request_digest, resolved_at
FROM human_decision_resolutions ORDER BY decision_id

-- name: human_decision_submissions
SELECT decision_id, attempt_id, source, actor_id, channel, candidate_hash, outcome, result_hash, submitted_at
FROM human_decision_submissions ORDER BY decision_id, attempt_id

-- name: controller_resources
SELECT controller_resource_id, resource_id, project_id, controller_name, resource_key, uid, generation,
       spec_hash, status_hash, deletion_requested_at, created_at, updated_at
FROM controller_resources ORDER BY controller_resource_id

-- name: controller_finalizers
SELECT controller_resource_id, finalizer, position
FROM controller_finalizers ORDER BY controller_resource_id, finalizer

-- name: controller_queue
SELECT controller_resource_id, available_at, queue_version, consecutive_errors, last_error_hash, created_at,
       updated_at
FROM controller_queue ORDER BY controller_resource_id

-- name: controller_workflows
SELECT request_id, controller_resource_id, request_key, workflow_name, input_fingerprint, reserved_run_id,
       run_id, status, attempt_count, error_hash, created_at, updated_at
FROM controller_workflows ORDER BY request_id

-- name: effects
SELECT effect_id, resource_id, source_resource_id, source_revision, effect_type, idempotency_key, payload_hash,
       owner_scope, status, attempt_count, next_attempt_at, result_hash, external_ref, error_hash, created_at,
       updated_at, settled_at
FROM effects ORDER BY effect_id

-- name: effect_attempts
SELECT effect_id, attempt_number, owner_id, lease_generation, started_at, finished_at, outcome, result_hash,
       error_hash
FROM effect_attempts ORDER BY effect_id, attempt_number

-- name: workflow_messages
SELECT workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
       pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id
FROM workflow_messages ORDER BY workflow_message_id

-- name: workflow_turns
-- The running time of an open turn is process-local.
SELECT workflow_turn_id, workflow_message_id, run_id, target_session_id, state, stop_reason,
       response_session_entry_id, iif(ended_at IS NULL, NULL, active_elapsed_ms) AS active_elapsed_ms,
       started_at, ended_at
FROM workflow_turns ORDER BY workflow_turn_id

-- name: channels
SELECT channel_id, resource_id, adapter_type, profile_key, created_at
FROM channels ORDER BY channel_id

-- name: channel_cursors
SELECT channel_id, cursor_key, cursor_value, updated_at
FROM channel_cursors ORDER BY channel_id, cursor_key

-- name: channel_messages
SELECT message_id, channel_id, decision_id, purpose, content_hash, status, created_at, updated_at
FROM channel_messages ORDER BY message_id

-- name: viewer_runs
SELECT run_id, presentation_revision, retained_from_revision, updated_at
FROM viewer_runs ORDER BY run_id

-- name: viewer_deltas
SELECT run_id, presentation_revision, delta_index, target_type, target_key, patch_hash, recorded_at
FROM viewer_deltas ORDER BY run_id, presentation_revision, delta_index

-- name: viewer_session_checkpoints
SELECT run_id, event_seq, state_hash, recorded_at
FROM viewer_session_checkpoints ORDER BY run_id, event_seq
