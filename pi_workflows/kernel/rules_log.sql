-- Each statement returns one row for each violation: the run that it concerns, or NULL and the resource of which
-- `ownership.sql` says whose it is, or nothing but NULL. Nothing else leaves the database. Whole tables are read once,
-- in the order of an index; correlated reads go through indexes, so that time grows with the database and not with its
-- square, and what must be sorted can go to a file.

-- The file ------------------------------------------------------------------------------------------------------------

-- name: integrity
-- SQLite's own check; the one row `ok` is no violation.
SELECT NULL FROM pragma_integrity_check WHERE integrity_check <> 'ok'

-- name: sequence
-- The counter of event numbers is one whole number, never behind the numbers that were given, and leaves room for the
-- next. SQLite's own table of counters takes anything.
SELECT NULL
FROM (SELECT max(event_seq) AS newest FROM events) AS h
CROSS JOIN (
    SELECT count(*) AS n, count(*) FILTER (WHERE typeof(seq) = 'integer') AS whole, max(seq) AS mark
    FROM sqlite_sequence WHERE name = 'events') AS counter
WHERE n > 1 OR whole < n OR newest > coalesce(mark, 0) OR mark > 9007199254740991

-- Resources and their events ------------------------------------------------------------------------------------------

-- name: revision_chain
-- A resource's revisions are 1..N, and N is the resource's own.
SELECT NULL, s.resource_id
FROM resources AS s
WHERE NOT (SELECT count(*) = s.revision
                  AND coalesce(min(e.resource_revision), 1) = 1 AND coalesce(max(e.resource_revision), 0) = s.revision
           FROM events AS e WHERE e.resource_id = s.resource_id)

-- name: event_types
-- The resources of the events whose type is unknown, or none of the resource's, event by event.
SELECT NULL, e.resource_id
FROM events AS e JOIN resources AS s ON s.resource_id = e.resource_id
WHERE e.event_type || ' ' || s.resource_type NOT IN (SELECT value FROM json_each(:kinds))

-- name: owner_of_row
-- A row's resource is of the row's own type and key.
SELECT d.run_id, NULL FROM runs AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'run' OR s.aggregate_key <> d.run_id
UNION ALL
SELECT NULL, d.source_resource_id FROM effects AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'effect' OR s.aggregate_key <> d.effect_id
UNION ALL
SELECT d.origin_run_id, NULL FROM workflow_settings AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'settings' OR s.aggregate_key <> d.scope_id
UNION ALL
SELECT d.run_id, NULL FROM workflow_follow_ups AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'follow_up' OR s.aggregate_key <> d.follow_up_id
UNION ALL
SELECT d.run_id, NULL FROM session_segments AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'session' OR s.aggregate_key <> d.segment_id
UNION ALL
SELECT d.run_id, NULL FROM human_decisions AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'decision' OR s.aggregate_key <> d.decision_id
UNION ALL
SELECT NULL, d.resource_id FROM controller_resources AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'controller' OR s.aggregate_key <> d.controller_resource_id
UNION ALL
SELECT d.run_id, NULL FROM workflow_messages AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'message' OR s.aggregate_key <> d.workflow_message_id
UNION ALL
SELECT NULL, d.resource_id FROM channels AS d CROSS JOIN resources AS s ON s.resource_id = d.resource_id
WHERE s.resource_type <> 'channel' OR s.aggregate_key <> d.channel_id

-- name: owner_of_resource
-- A resource has its row: but a deleted controller's, and settings that nobody opened yet.
SELECT iif(s.resource_type = 'run', s.aggregate_key, NULL)
FROM resources AS s
WHERE NOT CASE s.resource_type
    WHEN 'run' THEN EXISTS (SELECT 1 FROM runs AS d WHERE d.resource_id = s.resource_id)
    WHEN 'effect' THEN EXISTS (SELECT 1 FROM effects AS d WHERE d.resource_id = s.resource_id)
    WHEN 'follow_up' THEN EXISTS (SELECT 1 FROM workflow_follow_ups AS d WHERE d.resource_id = s.resource_id)
    WHEN 'session' THEN EXISTS (SELECT 1 FROM session_segments AS d WHERE d.resource_id = s.resource_id)
    WHEN 'decision' THEN EXISTS (SELECT 1 FROM human_decisions AS d WHERE d.resource_id = s.resource_id)
    WHEN 'message' THEN EXISTS (SELECT 1 FROM workflow_messages AS d WHERE d.resource_id = s.resource_id)
    WHEN 'channel' THEN EXISTS (SELECT 1 FROM channels AS d WHERE d.resource_id = s.resource_id)
    WHEN 'settings' THEN s.revision = 0
                         OR EXISTS (SELECT 1 FROM workflow_settings AS d WHERE d.resource_id = s.resource_id)
    WHEN 'controller' THEN EXISTS (SELECT 1 FROM controller_resources AS d WHERE d.resource_id = s.resource_id)
                           OR EXISTS (SELECT 1 FROM events AS e
                                      WHERE e.resource_id = s.resource_id AND e.resource_revision = s.revision
                                        AND e.event_type = 'controller.deleted')
    ELSE 0
END

-- name: resource_times
-- A resource was last updated by its last event.
SELECT NULL, s.resource_id
FROM resources AS s
JOIN events AS e ON e.resource_id = s.resource_id AND e.resource_revision = s.revision
WHERE e.recorded_at <> s.updated_at

-- name: lease_missing
-- Every resource has a lease row.
SELECT NULL, s.resource_id
FROM resources AS s
WHERE NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.resource_id = s.resource_id)

-- name: lease_row
-- An owned lease has a generation and a time in order, every generation was claimed, and no event was written under
-- one yet to come.
SELECT NULL, l.resource_id
FROM leases AS l
WHERE (l.owner_type IS NOT NULL AND (l.generation = 0 OR l.expires_at <= l.heartbeat_at))
   OR (SELECT count(*) FILTER (WHERE e.event_type IN ('lease.claimed', 'effect.attempt_started')) <> l.generation
              OR coalesce(max(e.lease_generation), 0) > l.generation
       FROM events AS e WHERE e.resource_id = l.resource_id)

-- Servers, receipts, runners ------------------------------------------------------------------------------------------

-- name: host_row
-- The server has one row.
SELECT NULL FROM (SELECT count(*) AS n, max(id) AS id FROM workflow_host_state) AS h WHERE h.n <> 1 OR h.id <> 1

-- name: host_epochs
-- No stored epoch is ahead of the server's.
SELECT c.run_id FROM host_commands AS c WHERE c.host_epoch > (SELECT max(epoch) FROM workflow_host_state)
UNION ALL
SELECT w.run_id FROM run_workers AS w WHERE w.host_epoch > (SELECT max(epoch) FROM workflow_host_state)

-- name: receipts
-- An accepted command has no error, and no receipt is ahead of its run.
SELECT c.run_id
FROM host_commands AS c
LEFT JOIN runs AS r ON r.run_id = c.run_id
LEFT JOIN resources AS s ON s.resource_id = r.resource_id
WHERE (c.outcome IN ('accepted', 'adopted') AND c.error_hash IS NOT NULL)
   OR (c.operation GLOB 'run.*' AND c.accepted_revision > s.revision)
UNION ALL
SELECT w.run_id
FROM worker_messages AS m
JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
LEFT JOIN runs AS r ON r.run_id = w.run_id
LEFT JOIN resources AS s ON s.resource_id = r.resource_id
WHERE (m.outcome IN ('accepted', 'adopted') AND m.error_hash IS NOT NULL) OR m.accepted_revision > s.revision

-- name: workers
-- A runner has an end exactly when it ended, and never a claim yet to come.
SELECT w.run_id
FROM run_workers AS w
LEFT JOIN runs AS r ON r.run_id = w.run_id
LEFT JOIN leases AS l ON l.resource_id = r.resource_id
WHERE w.generation > l.generation OR (w.finished_at IS NOT NULL) = (w.status IN ('starting', 'ready', 'running'))
