-- A managed resource waits for a run that does not exist.

-- with: controller
INSERT INTO controller_workflows (
    request_id, controller_resource_id, request_key, workflow_name, input_fingerprint, reserved_run_id, run_id, status,
    created_at, updated_at)
VALUES (
    'q', 'one', 'k', 'sample', zeroblob(32), NULL,
    NULL, 'waiting', 1, 1);
