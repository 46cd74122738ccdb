-- The key of a row by its number, for every table whose rows name others. Each statement is called as its table.

-- name: run_view_content
SELECT run_id, content_hash, media_type
FROM run_view_content WHERE rowid = :row

-- name: leases
SELECT resource_id
FROM leases WHERE rowid = :row

-- name: events
SELECT event_seq
FROM events WHERE rowid = :row

-- name: host_commands
SELECT request_id
FROM host_commands WHERE rowid = :row

-- name: run_workers
SELECT worker_epoch
FROM run_workers WHERE rowid = :row

-- name: worker_messages
SELECT worker_epoch, message_id
FROM worker_messages WHERE rowid = :row

-- name: interactive_requests
SELECT request_id
FROM interactive_requests WHERE rowid = :row

-- name: interactive_submissions
SELECT submission_id
FROM interactive_submissions WHERE rowid = :row

-- name: workflow_definitions
SELECT definition_digest
FROM workflow_definitions WHERE rowid = :row

-- name: runs
SELECT run_id
FROM runs WHERE rowid = :row

-- name: run_sources
SELECT run_id, mount_path
FROM run_sources WHERE rowid = :row

-- name: run_bindings
SELECT run_id
FROM run_bindings WHERE rowid = :row

-- name: run_queue
SELECT run_id
FROM run_queue WHERE rowid = :row

-- name: node_attempts
SELECT attempt_id
FROM node_attempts WHERE rowid = :row

-- name: attempt_active_intervals
SELECT attempt_id, interval_number
FROM attempt_active_intervals WHERE rowid = :row

-- name: run_steps
SELECT run_id, step_index
FROM run_steps WHERE rowid = :row

-- name: workflow_updates
SELECT update_id
FROM workflow_updates WHERE rowid = :row

-- name: workflow_settings
SELECT scope_id
FROM workflow_settings WHERE rowid = :row

-- name: workflow_setting_changes
SELECT change_id
FROM workflow_setting_changes WHERE rowid = :row

-- name: workflow_follow_ups
SELECT follow_up_id
FROM workflow_follow_ups WHERE rowid = :row

-- name: session_segments
SELECT segment_id
FROM session_segments WHERE rowid = :row

-- name: session_entries
SELECT segment_id, entry_seq
FROM session_entries WHERE rowid = :row

-- name: session_events
SELECT segment_id, event_seq
FROM session_events WHERE rowid = :row

-- name: attempt_entries
SELECT attempt_id, role
FROM attempt_entries WHERE rowid = :row

-- name: human_decisions
SELECT decision_id
FROM human_decisions WHERE rowid = :row

-- name: human_decision_resolutions
SELECT decision_id
FROM human_decision_resolutions WHERE rowid = :row

-- name: human_decision_submissions
SELECT decision_id, attempt_id
FROM human_decision_submissions WHERE rowid = :row

-- name: controller_resources
SELECT controller_resource_id
FROM controller_resources WHERE rowid = :row

-- name: controller_finalizers
SELECT controller_resource_id, finalizer
FROM controller_finalizers WHERE rowid = :row

-- name: controller_queue
SELECT controller_resource_id
FROM controller_queue WHERE rowid = :row

-- name: controller_workflows
SELECT request_id
FROM controller_workflows WHERE rowid = :row

-- name: effects
SELECT effect_id
FROM effects WHERE rowid = :row

-- name: effect_attempts
SELECT effect_id, attempt_number
FROM effect_attempts WHERE rowid = :row

-- name: workflow_messages
SELECT workflow_message_id
FROM workflow_messages WHERE rowid = :row

-- name: workflow_turns
SELECT workflow_turn_id
FROM workflow_turns WHERE rowid = :row

-- name: channels
SELECT channel_id
FROM channels WHERE rowid = :row

-- name: channel_cursors
SELECT channel_id, cursor_key
FROM channel_cursors WHERE rowid = :row

-- name: channel_messages
SELECT message_id
FROM channel_messages WHERE rowid = :row

-- name: viewer_runs
SELECT run_id
FROM viewer_runs WHERE rowid = :row

-- name: viewer_deltas
SELECT run_id, presentation_revision, delta_index
FROM viewer_deltas WHERE rowid = :row

-- name: viewer_session_checkpoints
SELECT run_id, event_seq
FROM viewer_session_checkpoints WHERE rowid = :row
