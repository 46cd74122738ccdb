-- name: state_counts
-- How much of each is stored. Only `runs`, `resources` and the three small tables are counted
-- whole; the others are ranges of an index that holds what is not over.
SELECT
    (SELECT count(*) FROM resources),
    (SELECT count(*) FROM runs),
    (SELECT count(*) FROM controller_resources),
    (SELECT count(*) FROM human_decisions),
    (SELECT count(*) FROM workflow_settings),
    (SELECT count(*) FROM interactive_requests WHERE status = 'pending'),
    (SELECT count(*) FROM workflow_follow_ups WHERE status = 'queued'),
    (SELECT count(*) FROM leases WHERE expires_at > :now_ms),
    (SELECT count(*) FROM effects WHERE status IN ('pending', 'applying', 'ambiguous'))

-- name: server_counts
-- What waits, works and stands still. A contradiction is a run whose queue entry says otherwise
-- about its end, while nothing is about to settle it.
SELECT
    (SELECT count(*) FROM run_queue WHERE status = 'queued'),
    (SELECT count(*) FROM run_queue WHERE status IN ('starting', 'running')),
    (SELECT count(*) FROM run_queue WHERE status = 'parked'),
    (SELECT count(*) FROM runs WHERE status = 'waiting'),
    (SELECT count(*) FROM leases WHERE expires_at <= :now_ms),
    (SELECT count(*) FROM interactive_requests WHERE status = 'pending'),
    (SELECT count(*) FROM effects WHERE status = 'ambiguous'),
    (SELECT count(*) FROM controller_queue),
    (SELECT count(*)
     FROM run_queue AS q
     CROSS JOIN runs AS r ON r.run_id = q.run_id
     WHERE q.status IN ('queued', 'starting', 'running', 'parked')
       AND r.status IN ('completed', 'failed', 'timed_out', 'cancelled')
       AND NOT EXISTS (
           SELECT 1 FROM effects AS e
           WHERE e.source_resource_id = r.resource_id AND e.effect_type = 'run.settle_queue'
             AND e.idempotency_key = r.run_id AND e.status IN ('pending', 'applying')))
    + (SELECT count(*)
       FROM runs AS r
       CROSS JOIN run_queue AS q ON q.run_id = r.run_id
       WHERE r.status IN ('queued', 'running', 'waiting')
         AND q.status IN ('done', 'failed', 'cancelled'))
