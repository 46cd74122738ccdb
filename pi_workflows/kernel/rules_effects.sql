-- As rules_log.sql: one row for each violation, the run that it concerns, or NULL and the resource.

-- Effects -------------------------------------------------------------------------------------------------------------

-- name: effect_state
-- An effect's status, tries and times agree. Only the queue learns its result without a try.
SELECT NULL, e.source_resource_id
FROM effects AS e
LEFT JOIN resources AS s ON s.resource_id = e.source_resource_id
LEFT JOIN leases AS l ON l.resource_id = e.resource_id
WHERE (e.status IN ('applied', 'rejected', 'cancelled')) <> (e.settled_at IS NOT NULL)
   OR NOT (SELECT count(*) = e.attempt_count
                  AND coalesce(min(t.attempt_number), 1) = 1 AND coalesce(max(t.attempt_number), 0) = e.attempt_count
                  AND count(*) - count(t.finished_at) = (e.status = 'applying')
                  AND coalesce(max(t.lease_generation) <= l.generation, 1)
           FROM effect_attempts AS t WHERE t.effect_id = e.effect_id)
   OR e.source_revision > s.revision
   OR (e.next_attempt_at IS NOT NULL AND e.status NOT IN ('pending', 'applying'))
   OR (e.attempt_count = 0 AND e.status IN ('applied', 'rejected', 'ambiguous')
       AND e.effect_type <> 'run.settle_queue')
   OR (e.attempt_count > 0 AND e.status NOT IN ('pending', 'applying')
       AND NOT EXISTS (SELECT 1 FROM effect_attempts AS t
                       WHERE t.effect_id = e.effect_id AND t.attempt_number = e.attempt_count
                         AND t.outcome = iif(e.status = 'cancelled', 'interrupted', e.status))
       AND NOT EXISTS (SELECT 1 FROM events AS v
                       WHERE v.resource_id = e.resource_id AND v.event_type = 'effect.recovered'))

-- name: settlement
-- Only a run with a place in the queue has a result to hand to it.
SELECT NULL, e.source_resource_id
FROM effects AS e
WHERE e.effect_type = 'run.settle_queue'
  AND NOT EXISTS (SELECT 1 FROM runs AS r JOIN run_queue AS q ON q.run_id = r.run_id
                  WHERE r.resource_id = e.source_resource_id)

-- name: effect_keys
-- What the identity of each effect is derived from.
SELECT effect_id, source_resource_id, effect_type, idempotency_key FROM effects

-- Settings and follow-ups ---------------------------------------------------------------------------------------------

-- name: settings_changes
-- A scope's changes are numbered 1..N, and each begins with the value that the one before it left.
SELECT s.origin_run_id
FROM (
    SELECT scope_id, change_number, before_hash, after_hash, row_number() OVER w AS expected,
           lag(after_hash) OVER w AS before, lead(change_number) OVER w AS following
    FROM workflow_setting_changes WINDOW w AS (PARTITION BY scope_id ORDER BY change_number)) AS c
JOIN workflow_settings AS s ON s.scope_id = c.scope_id
WHERE c.change_number <> c.expected OR c.before_hash <> coalesce(c.before, s.initial_hash)
   OR (c.following IS NULL AND c.after_hash <> s.current_hash)

-- name: settings_revision
-- A scope has as many changes as its resource has revisions; without any it has its first value.
SELECT s.origin_run_id
FROM workflow_settings AS s JOIN resources AS r ON r.resource_id = s.resource_id
WHERE (SELECT count(*) FROM workflow_setting_changes AS c WHERE c.scope_id = s.scope_id) <> r.revision
   OR (r.revision = 0 AND s.initial_hash <> s.current_hash)

-- name: follow_ups
-- A run's follow-ups are numbered 1..N, and none waits for a run that did not succeed.
SELECT f.run_id
FROM (
    SELECT run_id, order_number, status, row_number() OVER (PARTITION BY run_id ORDER BY order_number) AS expected
    FROM workflow_follow_ups) AS f
JOIN runs AS r ON r.run_id = f.run_id
WHERE f.order_number <> f.expected OR (f.status = 'queued' AND r.status IN ('failed', 'timed_out', 'cancelled'))

-- Managed resources and channels --------------------------------------------------------------------------------------

-- name: managed_names
-- A name without a project is unique too, which no index holds.
SELECT NULL, resource_id FROM (
    SELECT resource_id, count(*) OVER (PARTITION BY controller_name, resource_key) AS n
    FROM controller_resources WHERE project_id IS NULL)
WHERE n > 1

-- name: finalizers
-- The guards of a managed resource stand at 0..N-1.
SELECT NULL, c.resource_id
FROM (
    SELECT controller_resource_id, position,
           row_number() OVER (PARTITION BY controller_resource_id ORDER BY position) - 1 AS expected
    FROM controller_finalizers) AS f
JOIN controller_resources AS c ON c.controller_resource_id = f.controller_resource_id
WHERE f.position <> f.expected

-- name: managed_runs
-- A managed resource's run is the one that was reserved, and its end the run's. It may learn of an end later.
SELECT w.run_id
FROM controller_workflows AS w LEFT JOIN runs AS r ON r.run_id = w.run_id
WHERE (w.run_id IS NOT NULL AND w.reserved_run_id IS NOT w.run_id)
   OR (w.status IN ('running', 'waiting') AND w.run_id IS NULL)
   OR (w.status = 'succeeded' AND r.status IS NOT 'completed')
   OR (w.status = 'failed' AND r.status NOT IN ('failed', 'timed_out', 'cancelled'))

-- name: channel
-- What a channel confirmed was done by an effect: the message is its key, the channel or the decision its source.
SELECT d.run_id, iif(d.run_id IS NULL, c.resource_id, NULL)
FROM channel_messages AS m
LEFT JOIN channels AS c ON c.channel_id = m.channel_id
LEFT JOIN human_decisions AS d ON d.decision_id = m.decision_id
WHERE m.status = 'confirmed'
  AND NOT EXISTS (SELECT 1 FROM effects AS e
                  WHERE e.source_resource_id IN (c.resource_id, d.resource_id)
                    AND e.idempotency_key = m.message_id AND e.status = 'applied')
