-- A managed resource says that its run failed, which succeeded.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

-- with: controller
INSERT INTO controller_workflows (
    request_id, controller_resource_id, request_key, workflow_name, input_fingerprint, reserved_run_id, run_id, status,
    created_at, updated_at)
VALUES (
    'q', 'one', 'k', 'sample', zeroblob(32), (SELECT run_id FROM victim),
    (SELECT run_id FROM victim), 'failed', 1, 1);
