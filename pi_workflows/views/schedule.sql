-- name: queued_runs
-- Runs that wait for a runner, the longest due first. The index leads with these columns.
SELECT run_id, available_at FROM run_queue
WHERE status = 'queued'
ORDER BY available_at, created_at, run_id
LIMIT :limit

-- name: unfinished_runs
-- Runs that a server worked on, with the steps that they had when their newest runner was launched.
SELECT q.run_id, coalesce(
    (SELECT w.launch_step_total FROM run_workers AS w
     WHERE w.run_id = q.run_id ORDER BY w.generation DESC, w.started_at DESC LIMIT 1), 0)
FROM run_queue AS q
WHERE q.status IN ('starting', 'running')
ORDER BY q.available_at, q.created_at, q.run_id

-- name: unsettled_runs
-- Runs that ended without the queue having taken that over.
SELECT r.run_id FROM effects AS e
JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.status = 'pending' AND e.effect_type = 'run.settle_queue'
ORDER BY r.run_id

-- name: claimed_run
-- The run whose claim this is, or that of one of its effects.
SELECT r.run_id, NULL FROM runs AS r WHERE r.resource_id = :resource_id
UNION ALL
SELECT r.run_id, e.effect_id FROM effects AS e
JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.resource_id = :resource_id
