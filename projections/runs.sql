-- name: adopt_project
-- A project is known by its path; the event carries the row as it stands.
INSERT INTO projects (project_id, canonical_path, created_at)
VALUES (:project_id, :canonical_path, :created_at)
ON CONFLICT (project_id) DO NOTHING

-- name: adopt_definition
-- A definition is known by its digest; the event carries the row as it stands.
INSERT INTO workflow_definitions (definition_digest, workflow_name, definition_hash, created_at)
VALUES (unhex(:definition_digest), :workflow_name, unhex(:definition_hash), :created_at)
ON CONFLICT (definition_digest) DO NOTHING

-- name: insert_run
INSERT INTO runs (
    run_id, resource_id, project_id, parent_run_id, root_run_id, recovery_root_run_id, recovery_source_message_id,
    lineage_kind, restart_number, parent_run_revision, definition_digest, workflow_ref, launch_options_hash, title,
    status, paused, status_detail, input_hash, final_output_hash, error_hash, created_at, updated_at, finished_at)
VALUES (
    :run_id, :resource_id, :project_id, :parent_run_id, :root_run_id, :recovery_root_run_id,
    :recovery_source_message_id, :lineage_kind, :restart_number, :parent_run_revision, unhex(:definition_digest),
    :workflow_ref, unhex(:launch_options_hash), :title, :status, :paused, :status_detail, unhex(:input_hash),
    unhex(:final_output_hash), unhex(:error_hash), :created_at, :updated_at, :finished_at)

-- name: insert_source
INSERT INTO run_sources (run_id, mount_path, source_type, source_ref, source_revision)
VALUES (:run_id, :mount_path, :source_type, :source_ref, :source_revision)

-- name: insert_binding
INSERT INTO run_bindings (run_id, origin_session_id, execution_mode, created_at)
VALUES (:run_id, :origin_session_id, :execution_mode, :created_at)

-- name: insert_queue
INSERT INTO run_queue (
    run_id, status, available_at, origin_session_id, consecutive_errors, error_code, error_hash, created_at,
    updated_at, started_at, finished_at)
VALUES (
    :run_id, :status, :available_at, :origin_session_id, :consecutive_errors, :error_code, unhex(:error_hash),
    :created_at, :updated_at, :started_at, :finished_at)

-- name: change_run
UPDATE runs
SET status = :status, paused = :paused, status_detail = :status_detail, final_output_hash = unhex(:final_output_hash),
    error_hash = unhex(:error_hash), finished_at = :finished_at, updated_at = :at_ms
WHERE run_id = :run_id

-- name: change_queue
UPDATE run_queue
SET status = :status, available_at = :available_at, consecutive_errors = :consecutive_errors, error_code = :error_code,
    error_hash = unhex(:error_hash), started_at = :started_at, finished_at = :finished_at, updated_at = :at_ms
WHERE run_id = :run_id
