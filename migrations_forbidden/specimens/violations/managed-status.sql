-- A managed resource says that its run succeeded, which failed.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'failed' ORDER BY run_id LIMIT 1;

-- with: controller
INSERT INTO controller_workflows (
    request_id, controller_resource_id, request_key, workflow_name, input_fingerprint, reserved_run_id, run_id, status,
    created_at, updated_at)
SELECT 'q', 'one', 'k', 'sample', zeroblob(32), run_id, run_id, 'succeeded', 1, 1 FROM victim;
