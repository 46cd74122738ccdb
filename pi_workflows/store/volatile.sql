-- Facts about live processes and clocks: no event tells them, no rebuild compares them.

-- name: server
SELECT
    epoch, host_id, pid, process_start_identity, started_at, heartbeat_at, expires_at
FROM workflow_host_state
WHERE id = 1;

-- name: take_epoch
UPDATE workflow_host_state
SET
    epoch = epoch + 1, host_id = :host_id, token_hash = :token_hash, pid = :pid,
    process_start_identity = :process_start_identity, started_at = :now_ms,
    heartbeat_at = :now_ms, expires_at = :expires_at
WHERE id = 1;

-- name: heartbeat
UPDATE workflow_host_state
SET heartbeat_at = :now_ms, expires_at = :expires_at
WHERE id = 1 AND epoch = :epoch AND host_id IS NOT NULL AND expires_at > :now_ms;

-- name: release_epoch
UPDATE workflow_host_state
SET
    host_id = NULL, token_hash = NULL, pid = NULL, process_start_identity = NULL,
    started_at = NULL, heartbeat_at = NULL, expires_at = NULL
WHERE id = 1 AND epoch = :epoch AND host_id IS NOT NULL;

-- name: insert_worker
INSERT INTO run_workers (
    worker_epoch, run_id, generation, host_epoch, launch_envelope_hash, launch_step_total, status,
    started_at
) VALUES (
    :worker_epoch, :run_id, :generation, :host_epoch, :launch_envelope_hash, :launch_step_total,
    'starting', :now_ms
);

-- name: worker_spawned
UPDATE run_workers
SET pid = :pid, process_start_identity = :process_start_identity
WHERE worker_epoch = :worker_epoch AND status = 'starting' AND pid IS NULL;

-- name: worker_ready
UPDATE run_workers
SET status = 'ready', ready_at = :now_ms
WHERE worker_epoch = :worker_epoch AND status = 'starting';

-- name: worker_running
UPDATE run_workers
SET status = 'running'
WHERE worker_epoch = :worker_epoch AND status = 'ready';

-- name: worker_ended
UPDATE run_workers
SET
    status = :status, finished_at = :now_ms, exit_code = :exit_code, signal = :signal,
    diagnostic_hash = :diagnostic_hash
WHERE worker_epoch = :worker_epoch AND status IN ('starting', 'ready', 'running');

-- name: live_workers
SELECT
    worker_epoch, run_id, generation, host_epoch, launch_step_total, pid, process_start_identity,
    status, started_at
FROM run_workers
WHERE status IN ('starting', 'ready', 'running')
ORDER BY run_id;

-- name: sample_active_time
-- A clock that steps back never takes active time away.
UPDATE attempt_active_intervals
SET
    observed_at = max(observed_at, :observed_at),
    elapsed_ms = max(elapsed_ms, :elapsed_ms)
WHERE attempt_id = :attempt_id AND interval_number = :interval_number AND ended_at IS NULL;

-- name: sample_turn
-- A clock that steps back never takes active time away.
UPDATE workflow_turns SET active_elapsed_ms = max(active_elapsed_ms, :elapsed_ms)
WHERE workflow_turn_id = :workflow_turn_id AND state = 'started';
