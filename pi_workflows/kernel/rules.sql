-- Each statement returns one row for each violation: the run that it concerns, or NULL and the resource of which
-- `ownership.sql` says whose it is, or nothing but NULL. Nothing else leaves the database. Whole tables are read once,
-- in the order of an index; correlated reads go through indexes, so that time grows with the database and not with its
-- square, and what must be sorted can go to a file.

-- The file ------------------------------------------------------------------------------------------------------------

-- name: integrity
-- SQLite's own check; the one row `ok` is no violation.
SELECT NULL FROM pragma_integrity_check WHERE integrity_check <> 'ok'

-- name: foreign_keys
-- A table without rowid has no number here: the event says whose a link is.
SELECT
    CASE v."table"
        WHEN 'runs' THEN (SELECT run_id FROM runs WHERE rowid = v.rowid)
        WHEN 'run_sources' THEN (SELECT run_id FROM run_sources WHERE rowid = v.rowid)
        WHEN 'run_bindings' THEN (SELECT run_id FROM run_bindings WHERE rowid = v.rowid)
        WHEN 'run_queue' THEN (SELECT run_id FROM run_queue WHERE rowid = v.rowid)
        WHEN 'run_steps' THEN (SELECT run_id FROM run_steps WHERE rowid = v.rowid)
        WHEN 'run_view_content' THEN (SELECT run_id FROM run_view_content WHERE rowid = v.rowid)
        WHEN 'run_workers' THEN (SELECT run_id FROM run_workers WHERE rowid = v.rowid)
        WHEN 'host_commands' THEN (SELECT run_id FROM host_commands WHERE rowid = v.rowid)
        WHEN 'worker_messages' THEN (
            SELECT w.run_id FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
            WHERE m.rowid = v.rowid)
        WHEN 'node_attempts' THEN (SELECT run_id FROM node_attempts WHERE rowid = v.rowid)
        WHEN 'attempt_active_intervals' THEN (
            SELECT a.run_id FROM attempt_active_intervals AS i JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
            WHERE i.rowid = v.rowid)
        WHEN 'workflow_updates' THEN (
            SELECT a.run_id FROM workflow_updates AS u JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
            WHERE u.rowid = v.rowid)
        WHEN 'attempt_entries' THEN (
            SELECT a.run_id FROM attempt_entries AS e JOIN node_attempts AS a ON a.attempt_id = e.attempt_id
            WHERE e.rowid = v.rowid)
        WHEN 'interactive_requests' THEN (SELECT run_id FROM interactive_requests WHERE rowid = v.rowid)
        WHEN 'interactive_submissions' THEN (
            SELECT q.run_id FROM interactive_submissions AS s
            JOIN interactive_requests AS q ON q.request_id = s.request_id
            WHERE s.rowid = v.rowid)
        WHEN 'workflow_follow_ups' THEN (SELECT run_id FROM workflow_follow_ups WHERE rowid = v.rowid)
        WHEN 'workflow_settings' THEN (SELECT origin_run_id FROM workflow_settings WHERE rowid = v.rowid)
        WHEN 'session_segments' THEN (SELECT run_id FROM session_segments WHERE rowid = v.rowid)
        WHEN 'session_entries' THEN (SELECT run_id FROM session_entries WHERE rowid = v.rowid)
        WHEN 'session_events' THEN (SELECT run_id FROM session_events WHERE rowid = v.rowid)
        WHEN 'human_decisions' THEN (SELECT run_id FROM human_decisions WHERE rowid = v.rowid)
        WHEN 'workflow_messages' THEN (SELECT run_id FROM workflow_messages WHERE rowid = v.rowid)
        WHEN 'workflow_turns' THEN (SELECT run_id FROM workflow_turns WHERE rowid = v.rowid)
        WHEN 'viewer_runs' THEN (SELECT run_id FROM viewer_runs WHERE rowid = v.rowid)
        WHEN 'viewer_deltas' THEN (SELECT run_id FROM viewer_deltas WHERE rowid = v.rowid)
        WHEN 'viewer_session_checkpoints' THEN (
            SELECT run_id FROM viewer_session_checkpoints WHERE rowid = v.rowid)
    END,
    CASE v."table"
        WHEN 'resources' THEN (SELECT resource_id FROM resources WHERE rowid = v.rowid)
        WHEN 'leases' THEN (SELECT resource_id FROM leases WHERE rowid = v.rowid)
        WHEN 'events' THEN (SELECT resource_id FROM events WHERE rowid = v.rowid)
        WHEN 'effects' THEN (SELECT source_resource_id FROM effects WHERE rowid = v.rowid)
        WHEN 'effect_attempts' THEN (
            SELECT e.source_resource_id FROM effect_attempts AS t JOIN effects AS e ON e.effect_id = t.effect_id
            WHERE t.rowid = v.rowid)
    END
FROM pragma_foreign_key_check AS v

-- name: sequence
-- The counter of event numbers is never behind the numbers that were given.
SELECT NULL FROM (SELECT max(event_seq) AS newest FROM events) AS e
WHERE e.newest > coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'), 0)

-- Resources and their events ------------------------------------------------------------------------------------------

-- name: revision_chain
-- A resource's revisions are 1..N, and N is the resource's own.
SELECT NULL, s.resource_id
FROM resources AS s
WHERE NOT (SELECT count(*) = s.revision
                  AND coalesce(min(e.resource_revision), 1) = 1 AND coalesce(max(e.resource_revision), 0) = s.revision
           FROM events AS e WHERE e.resource_id = s.resource_id)

-- name: event_kinds
-- Which types of events stand on which types of resources.
SELECT DISTINCT e.event_type, s.resource_type
FROM events AS e JOIN resources AS s ON s.resource_id = e.resource_id

-- name: events_of_kind
-- The resources of the events of one type that stand on one type of resource, event by event.
SELECT e.resource_id
FROM events AS e JOIN resources AS s ON s.resource_id = e.resource_id
WHERE e.event_type = :event_type AND s.resource_type = :resource_type

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

-- name: host_state
-- One row, and no stored epoch is ahead of it.
SELECT NULL FROM (SELECT count(*) AS n FROM workflow_host_state) AS h WHERE h.n <> 1
UNION ALL
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

-- Runs ----------------------------------------------------------------------------------------------------------------

-- name: definition
-- A definition is known by the digest of its document.
SELECT r.run_id
FROM workflow_definitions AS d LEFT JOIN runs AS r ON r.definition_digest = d.definition_digest
WHERE d.definition_hash <> d.definition_digest

-- name: queue_state
-- A run that ended and its queue entry agree, save while the settlement is pending; so does an entry that is over.
SELECT r.run_id
FROM runs AS r JOIN run_queue AS q ON q.run_id = r.run_id
WHERE NOT (r.status = 'completed' AND q.status = 'done'
           OR r.status IN ('failed', 'timed_out') AND q.status = 'failed'
           OR r.status = 'cancelled' AND q.status = 'cancelled')
  AND (q.status IN ('done', 'failed', 'cancelled')
       OR r.status IN ('completed', 'failed', 'timed_out', 'cancelled')
       AND NOT EXISTS (SELECT 1 FROM effects AS e
                       WHERE e.source_resource_id = r.resource_id AND e.effect_type = 'run.settle_queue'
                         AND e.status IN ('pending', 'applying')))

-- name: queue_times
-- A queue entry has an end exactly when it is over.
SELECT run_id FROM run_queue WHERE (finished_at IS NOT NULL) <> (status IN ('done', 'failed', 'cancelled'))

-- name: queue_session
-- An interactive run reserves its session, a headless one none.
SELECT q.run_id FROM run_queue AS q JOIN run_bindings AS b ON b.run_id = q.run_id
WHERE (b.execution_mode = 'interactive' AND q.origin_session_id IS NOT b.origin_session_id)
   OR (b.execution_mode = 'headless' AND q.origin_session_id IS NOT NULL)

-- name: session_runs
-- A session has one interactive run that goes on, and no other.
SELECT run_id FROM (
    SELECT b.run_id, count(*) OVER (PARTITION BY b.origin_session_id) AS n
    FROM run_bindings AS b CROSS JOIN runs AS r ON r.run_id = b.run_id
    WHERE b.execution_mode = 'interactive' AND r.status IN ('queued', 'running', 'waiting'))
WHERE n > 1

-- name: waiting_request
-- A waiting run has a question that is open, or answered and not yet taken.
SELECT r.run_id FROM runs AS r
WHERE r.status = 'waiting'
  AND NOT EXISTS (SELECT 1 FROM interactive_requests AS q
                  WHERE q.run_id = r.run_id
                    AND (q.status = 'pending' OR q.status = 'settled' AND q.consumed_at IS NULL))

-- name: lineage
-- A root is its own root; a restart continues its parent's line and started after it ended. Restarts are counted from
-- parent to child, so that a circle has a run where the count is wrong.
SELECT r.run_id FROM runs AS r LEFT JOIN runs AS p ON p.run_id = r.parent_run_id
LEFT JOIN resources AS s ON s.resource_id = p.resource_id
WHERE (r.parent_run_id IS NULL AND r.recovery_root_run_id IS NULL AND r.root_run_id <> r.run_id)
   OR (r.parent_run_id IS NOT NULL
       AND (r.root_run_id <> p.root_run_id OR r.restart_number <> p.restart_number + 1
            OR p.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')
            OR r.parent_run_revision > s.revision))

-- name: recovery
-- A recovery answers a terminal message of its own chain, which begins with a run that is none and has two at most.
SELECT r.run_id
FROM runs AS r
LEFT JOIN runs AS t ON t.run_id = r.recovery_root_run_id
LEFT JOIN workflow_messages AS m ON m.workflow_message_id = r.recovery_source_message_id
LEFT JOIN runs AS c ON c.run_id = m.run_id
WHERE r.recovery_root_run_id IS NOT NULL
  AND (t.recovery_root_run_id IS NOT NULL OR m.kind IS NOT 'terminal' OR m.run_id = r.run_id
       OR (c.run_id IS NOT r.recovery_root_run_id AND c.recovery_root_run_id IS NOT r.recovery_root_run_id)
       OR (SELECT count(*) FROM (SELECT 1 FROM runs AS o
                                 WHERE o.recovery_root_run_id = r.recovery_root_run_id LIMIT 3)) > 2)

-- name: terminal_work
-- A run that ended keeps nothing open; an attempt that lost its runner was followed by another or ended with the run.
SELECT r.run_id FROM runs AS r
WHERE r.status IN ('completed', 'failed', 'timed_out', 'cancelled')
  AND (r.paused = 1
       OR EXISTS (SELECT 1 FROM node_attempts AS a
                  WHERE a.run_id = r.run_id AND a.status IN ('pending', 'running', 'waiting'))
       OR EXISTS (SELECT 1 FROM node_attempts AS a
                  WHERE a.run_id = r.run_id AND a.status = 'interrupted'
                    AND NOT EXISTS (SELECT 1 FROM node_attempts AS n
                                    WHERE n.run_id = a.run_id AND n.node_id = a.node_id
                                      AND n.attempt_number > a.attempt_number))
       OR EXISTS (SELECT 1 FROM interactive_requests AS q WHERE q.run_id = r.run_id AND q.status = 'pending')
       OR EXISTS (SELECT 1 FROM leases AS l WHERE l.resource_id = r.resource_id AND l.owner_type IS NOT NULL)
       OR EXISTS (SELECT 1 FROM workflow_messages AS m
                  WHERE m.run_id = r.run_id AND m.status = 'pending' AND m.kind IN ('step', 'decision'))
       OR r.status <> 'completed'
       AND EXISTS (SELECT 1 FROM workflow_follow_ups AS f WHERE f.run_id = r.run_id AND f.status = 'queued'))

-- name: terminal_data
-- A failure has an error, a success has none.
SELECT run_id FROM runs
WHERE (status IN ('failed', 'timed_out') AND error_hash IS NULL) OR (status = 'completed' AND error_hash IS NOT NULL)

-- name: run_source
-- Every run knows where its workflow came from.
SELECT r.run_id FROM runs AS r
WHERE NOT EXISTS (SELECT 1 FROM run_sources AS c WHERE c.run_id = r.run_id AND c.mount_path = '')

-- Attempts ------------------------------------------------------------------------------------------------------------

-- name: attempt_settled
-- An attempt has an end exactly when it settled.
SELECT run_id FROM node_attempts
WHERE (finished_at IS NOT NULL) <> (status IN ('completed', 'failed', 'timed_out', 'cancelled'))

-- name: attempt_numbers
-- The attempts of a node are numbered 1..N, and its visits neither fall nor skip.
SELECT run_id FROM (
    SELECT run_id, attempt_number, visit_number,
           row_number() OVER w AS expected, lag(visit_number, 1, 0) OVER w AS before
    FROM node_attempts WINDOW w AS (PARTITION BY run_id, node_id ORDER BY attempt_number))
WHERE attempt_number <> expected OR visit_number < before OR visit_number > before + 1 OR visit_number = 0

-- name: active_clock
-- Time runs only for a run that works and an attempt that has a budget. A pause that waits for a manual effect has
-- stopped sampling, and closes its interval with the effect.
SELECT a.run_id FROM attempt_active_intervals AS i
JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
JOIN runs AS r ON r.run_id = a.run_id
WHERE i.ended_at IS NULL
  AND (a.status NOT IN ('pending', 'running', 'waiting') OR r.status NOT IN ('running', 'waiting')
       OR a.timeout_ms IS NULL
       OR r.paused = 1 AND NOT EXISTS (SELECT 1 FROM effects AS e
                                       WHERE e.source_resource_id = r.resource_id AND e.status = 'applying'))

-- name: intervals
-- The intervals of an attempt are numbered 1..N, and only the last may be open. That each was closed before the next
-- was opened is what the replay finds: a second open one has no place.
SELECT a.run_id FROM (
    SELECT attempt_id, interval_number, ended_at, observed_at,
           row_number() OVER w AS expected, lead(interval_number) OVER w AS following
    FROM attempt_active_intervals WINDOW w AS (PARTITION BY attempt_id ORDER BY interval_number)) AS i
JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
WHERE i.interval_number <> i.expected OR (i.ended_at IS NULL AND i.following IS NOT NULL)
   OR (i.ended_at IS NOT NULL AND i.ended_at <> i.observed_at)

-- name: steps
-- Steps are numbered 0..N-1 and name settled attempts of their own run.
SELECT s.run_id FROM (
    SELECT run_id, step_index, attempt_id, row_number() OVER (PARTITION BY run_id ORDER BY step_index) - 1 AS expected
    FROM run_steps) AS s
JOIN node_attempts AS a ON a.attempt_id = s.attempt_id
WHERE s.step_index <> s.expected OR a.run_id <> s.run_id
   OR a.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')

-- name: updates
-- Progress is numbered 1..N in its attempt and never ahead of its run.
SELECT a.run_id FROM (
    SELECT attempt_id, update_seq, run_revision,
           row_number() OVER (PARTITION BY attempt_id ORDER BY update_seq) AS expected
    FROM workflow_updates) AS u
JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
JOIN runs AS r ON r.run_id = a.run_id
JOIN resources AS s ON s.resource_id = r.resource_id
WHERE u.update_seq <> u.expected OR u.run_revision > s.revision

-- name: settings_bind
-- An attempt is bound to one value of one scope, or to none.
SELECT a.run_id
FROM node_attempts AS a
LEFT JOIN workflow_settings AS s ON s.scope_id = a.settings_scope_id
LEFT JOIN workflow_setting_changes AS c
    ON c.scope_id = a.settings_scope_id AND c.change_number = a.settings_change_number
WHERE (a.settings_scope_id IS NULL) <> (a.settings_change_number IS NULL)
   OR (a.settings_scope_id IS NULL) <> (a.settings_hash IS NULL)
   OR (a.settings_scope_id IS NOT NULL
       AND a.settings_hash IS NOT iif(a.settings_change_number = 0, s.initial_hash, c.after_hash))

-- Questions -----------------------------------------------------------------------------------------------------------

-- name: pending_request
-- An open question belongs to an open attempt of a run that goes on.
SELECT q.run_id FROM interactive_requests AS q
JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
JOIN runs AS r ON r.run_id = q.run_id
WHERE q.status = 'pending'
  AND (a.run_id <> q.run_id OR a.status NOT IN ('pending', 'running', 'waiting', 'interrupted')
       OR r.status NOT IN ('running', 'waiting'))

-- name: accepted_request
-- A settled question has an accepted answer of its own.
SELECT q.run_id FROM interactive_requests AS q
WHERE q.status = 'settled'
  AND NOT EXISTS (SELECT 1 FROM interactive_submissions AS s
                  WHERE s.submission_id = q.accepted_submission_id AND s.request_id = q.request_id
                    AND s.outcome = 'accepted')

-- name: submissions
-- One answer at most is accepted or looked at, it is its question's, and none is newer than its question.
SELECT q.run_id FROM interactive_submissions AS s JOIN interactive_requests AS q ON q.request_id = s.request_id
WHERE (s.outcome = 'accepted' AND q.accepted_submission_id IS NOT s.submission_id)
   OR (s.outcome = 'validating' AND q.status <> 'pending') OR s.request_revision > q.revision
   OR (s.outcome IN ('accepted', 'validating')
       AND EXISTS (SELECT 1 FROM interactive_submissions AS o
                   WHERE o.request_id = s.request_id AND o.submission_id <> s.submission_id
                     AND o.outcome IN ('accepted', 'validating')))

-- name: consumed_request
-- An answer that was taken ended its attempt.
SELECT q.run_id FROM interactive_requests AS q JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
WHERE q.consumed_at IS NOT NULL AND a.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')

-- name: request_target
-- A question goes to the session that its run is bound to.
SELECT q.run_id FROM interactive_requests AS q JOIN run_bindings AS b ON b.run_id = q.run_id
WHERE q.target_session_id <> b.origin_session_id

-- name: decision_request
-- A question is a decision exactly when there is one.
SELECT q.run_id FROM interactive_requests AS q
WHERE q.kind = 'decision' AND NOT EXISTS (SELECT 1 FROM human_decisions AS d WHERE d.attempt_id = q.attempt_id)
UNION ALL
SELECT d.run_id FROM human_decisions AS d
WHERE NOT EXISTS (SELECT 1 FROM interactive_requests AS q WHERE q.attempt_id = d.attempt_id AND q.kind = 'decision')

-- name: decision_rule
-- What may resolve a decision at its deadline depends on its default, and a resolution is one of the decision as asked.
SELECT d.run_id
FROM human_decision_resolutions AS r JOIN human_decisions AS d ON d.decision_id = r.decision_id
WHERE (r.provenance = 'expired_no_default' AND d.default_response_hash IS NOT NULL)
   OR (r.provenance = 'timeout_policy'
       AND (d.default_response_hash IS NULL OR d.deadline_at IS NULL OR r.resolved_at < d.deadline_at))
   OR r.request_digest <> d.request_digest

-- name: decision_winner
-- A person who decided is the one winner, a winner decided, and nobody is asked any more.
SELECT d.run_id
FROM human_decision_resolutions AS r JOIN human_decisions AS d ON d.decision_id = r.decision_id
WHERE (r.provenance = 'human' AND r.outcome = 'accepted'
       AND (SELECT count(*) FROM human_decision_submissions AS s
            WHERE s.decision_id = r.decision_id AND s.outcome = 'won') <> 1)
   OR EXISTS (SELECT 1 FROM interactive_requests AS q WHERE q.attempt_id = d.attempt_id AND q.status = 'pending')
UNION ALL
SELECT d.run_id
FROM human_decision_submissions AS s JOIN human_decisions AS d ON d.decision_id = s.decision_id
WHERE s.outcome = 'won'
  AND NOT EXISTS (SELECT 1 FROM human_decision_resolutions AS r WHERE r.decision_id = s.decision_id)

-- Effects -------------------------------------------------------------------------------------------------------------

-- name: effect_state
-- An effect's status, tries and times agree.
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

-- Messages and turns --------------------------------------------------------------------------------------------------

-- name: session_turns
-- A session has one open turn at most.
SELECT run_id FROM (
    SELECT run_id, count(*) OVER (PARTITION BY target_session_id) AS n FROM workflow_turns WHERE state = 'started')
WHERE n > 1

-- name: turn_match
-- A turn answers a message that was sent to its session and starts one, for a run that goes on.
SELECT t.run_id
FROM workflow_turns AS t
JOIN workflow_messages AS m ON m.workflow_message_id = t.workflow_message_id
LEFT JOIN runs AS r ON r.run_id = t.run_id
WHERE t.run_id <> m.run_id OR t.target_session_id <> m.target_session_id OR m.status <> 'sent'
   OR m.kind IN ('decision', 'notification')
   OR (t.state = 'started' AND m.kind = 'step' AND r.status IN ('completed', 'failed', 'timed_out', 'cancelled'))

-- name: message_source
-- A message comes from what its kind says, of its own run, and waits only while that is wanted. Where a notification
-- comes from is no row.
SELECT m.run_id
FROM workflow_messages AS m
WHERE NOT CASE m.kind
    WHEN 'step' THEN EXISTS (
        SELECT 1 FROM interactive_requests AS q
        WHERE q.request_id = m.source_id AND q.run_id = m.run_id
          AND (m.status <> 'pending' OR q.status = 'pending'))
    WHEN 'decision' THEN EXISTS (
        SELECT 1 FROM human_decisions AS d
        WHERE d.decision_id = m.source_id AND d.run_id = m.run_id
          AND (m.status <> 'pending' OR NOT EXISTS (SELECT 1 FROM human_decision_resolutions AS r
                                                    WHERE r.decision_id = d.decision_id)))
    WHEN 'terminal' THEN EXISTS (
        SELECT 1 FROM runs AS r
        WHERE r.run_id = m.source_id AND r.run_id = m.run_id
          AND r.status IN ('completed', 'failed', 'timed_out', 'cancelled'))
    WHEN 'followUp' THEN EXISTS (
        SELECT 1 FROM workflow_follow_ups AS f
        WHERE f.follow_up_id = m.source_id AND f.run_id = m.run_id
          AND (m.status <> 'pending' OR f.status = 'queued'))
    ELSE 1
END

-- name: terminal_messages
-- A run tells its end once.
SELECT run_id FROM workflow_messages WHERE kind = 'terminal' GROUP BY run_id HAVING count(*) > 1

-- name: reminders
-- A question is brought back to mind twice at most; why a message was made stands in its first event.
SELECT min(m.run_id)
FROM workflow_messages AS m
JOIN events AS e ON e.resource_id = m.resource_id AND e.resource_revision = 1
JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE m.kind = 'step' AND e.event_type = 'message.created' AND json_valid(CAST(b.content AS TEXT))
  AND json_extract(CAST(b.content AS TEXT), '$.reason') = 'reminder'
GROUP BY m.source_id HAVING count(*) > 2

-- name: message_entries
-- An entry of a session is one message.
SELECT run_id FROM (
    SELECT run_id, count(*) OVER (PARTITION BY target_session_id, pi_session_entry_id) AS n
    FROM workflow_messages WHERE pi_session_entry_id IS NOT NULL)
WHERE n > 1

-- name: recovery_stop
-- Only the end of a run can stop a recovery.
SELECT run_id FROM workflow_messages WHERE recovery_stop IS NOT NULL AND kind <> 'terminal'

-- Captured sessions ---------------------------------------------------------------------------------------------------

-- name: segments
-- A capture counts what it holds, and has an end and a failure exactly when it ended or failed.
SELECT s.run_id
FROM session_segments AS s
WHERE (s.status = 'recording') <> (s.finished_at IS NULL) OR (s.status = 'failed') <> (s.failure_hash IS NOT NULL)
   OR s.entry_count <> (SELECT count(*) FROM session_entries AS e WHERE e.segment_id = s.segment_id)
   OR s.event_count <> (SELECT count(*) FROM session_events AS e WHERE e.segment_id = s.segment_id)

-- name: segment_rows
-- What a capture holds is numbered 1..N in it and belongs to its run.
SELECT e.run_id
FROM (
    SELECT segment_id, run_id, entry_seq, row_number() OVER (PARTITION BY segment_id ORDER BY entry_seq) AS expected
    FROM session_entries) AS e
JOIN session_segments AS s ON s.segment_id = e.segment_id
WHERE e.entry_seq <> e.expected OR e.run_id <> s.run_id
UNION ALL
SELECT e.run_id
FROM (
    SELECT segment_id, run_id, event_seq, row_number() OVER (PARTITION BY segment_id ORDER BY event_seq) AS expected
    FROM session_events) AS e
JOIN session_segments AS s ON s.segment_id = e.segment_id
WHERE e.event_seq <> e.expected OR e.run_id <> s.run_id

-- name: run_rows
-- What was captured of a run is numbered 1..N over all of its captures, entries and events apart.
SELECT run_id
FROM (
    SELECT run_id, run_seq, row_number() OVER (PARTITION BY run_id ORDER BY run_seq) AS expected FROM session_entries)
WHERE run_seq <> expected
UNION ALL
SELECT run_id
FROM (
    SELECT run_id, run_seq, row_number() OVER (PARTITION BY run_id ORDER BY run_seq) AS expected FROM session_events)
WHERE run_seq <> expected

-- name: entry_links
-- An attempt's entries were captured in its own run, and an event's attempt is one of that run.
SELECT a.run_id
FROM attempt_entries AS e
JOIN node_attempts AS a ON a.attempt_id = e.attempt_id
JOIN session_segments AS s ON s.segment_id = e.segment_id
WHERE a.run_id <> s.run_id
UNION ALL
SELECT e.run_id
FROM session_events AS e
WHERE e.attempt_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM node_attempts AS a WHERE a.attempt_id = e.attempt_id AND a.run_id = e.run_id)

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

-- What people look at -------------------------------------------------------------------------------------------------

-- name: viewer_cursor
-- Every run has a cursor, and the floor trails it by the window.
SELECT r.run_id FROM runs AS r LEFT JOIN viewer_runs AS v ON v.run_id = r.run_id
WHERE v.run_id IS NULL OR v.retained_from_revision <> max(1, v.presentation_revision - 255)

-- name: viewer_deltas
-- Where a run's view has patches, each revision of the window has them, numbered 0..N-1. The first revision has none.
SELECT d.run_id
FROM (
    SELECT run_id, presentation_revision, delta_index, lag(presentation_revision) OVER w AS before,
           lag(delta_index) OVER w AS index_before, lead(presentation_revision) OVER w AS following
    FROM viewer_deltas WINDOW w AS (PARTITION BY run_id ORDER BY presentation_revision, delta_index)) AS d
JOIN viewer_runs AS v ON v.run_id = d.run_id
WHERE d.presentation_revision NOT BETWEEN max(2, v.retained_from_revision) AND v.presentation_revision
   OR d.delta_index <> iif(d.presentation_revision IS d.before, d.index_before + 1, 0)
   OR (d.before IS NULL AND d.presentation_revision <> max(2, v.retained_from_revision))
   OR d.presentation_revision > d.before + 1
   OR (d.following IS NULL AND d.presentation_revision <> v.presentation_revision)

-- name: checkpoints
-- A run has a checkpoint at each 256th event of its captured sessions.
SELECT v.run_id
FROM viewer_runs AS v
WHERE (SELECT count(*) FROM viewer_session_checkpoints AS c WHERE c.run_id = v.run_id)
      <> coalesce((SELECT max(e.run_seq) FROM session_events AS e WHERE e.run_id = v.run_id), 0) / 256
   OR EXISTS (SELECT 1 FROM viewer_session_checkpoints AS c
              WHERE c.run_id = v.run_id
                AND (c.event_seq % 256 <> 0
                     OR c.event_seq > (SELECT max(e.run_seq) FROM session_events AS e WHERE e.run_id = v.run_id)))

-- Content -------------------------------------------------------------------------------------------------------------

-- name: media
-- What is read as JSON is stored as JSON. Errors, reasons, prompts, messages and diagnoses are text, which may be JSON.
WITH texts (digest) AS MATERIALIZED (SELECT blob_hash FROM blobs WHERE media_type <> 'application/json')

SELECT d.run_id, NULL FROM texts AS t CROSS JOIN runs AS d ON d.input_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN runs AS d ON d.final_output_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN runs AS d ON d.launch_options_hash = t.digest
UNION ALL
SELECT r.run_id, NULL FROM texts AS t CROSS JOIN workflow_definitions AS d ON d.definition_hash = t.digest
LEFT JOIN runs AS r ON r.definition_digest = d.definition_digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN node_attempts AS d ON d.output_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN node_attempts AS d ON d.receipt_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN node_attempts AS d ON d.settings_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN interactive_requests AS d ON d.contract_hash = t.digest
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN interactive_submissions AS d ON d.payload_hash = t.digest
JOIN interactive_requests AS o ON o.request_id = d.request_id
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN workflow_updates AS d ON d.data_hash = t.digest
JOIN node_attempts AS o ON o.attempt_id = d.attempt_id
UNION ALL
SELECT d.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_settings AS d ON d.initial_hash = t.digest
UNION ALL
SELECT d.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_settings AS d ON d.current_hash = t.digest
UNION ALL
SELECT o.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_setting_changes AS d ON d.patch_hash = t.digest
JOIN workflow_settings AS o ON o.scope_id = d.scope_id
UNION ALL
SELECT o.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_setting_changes AS d ON d.before_hash = t.digest
JOIN workflow_settings AS o ON o.scope_id = d.scope_id
UNION ALL
SELECT o.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_setting_changes AS d ON d.after_hash = t.digest
JOIN workflow_settings AS o ON o.scope_id = d.scope_id
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN session_segments AS d ON d.binding_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN session_entries AS d ON d.entry_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN session_events AS d ON d.payload_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.subject_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.presentation_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.choices_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.default_response_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.request_hash = t.digest
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN human_decision_resolutions AS d ON d.response_hash = t.digest
JOIN human_decisions AS o ON o.decision_id = d.decision_id
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN human_decision_submissions AS d ON d.candidate_hash = t.digest
JOIN human_decisions AS o ON o.decision_id = d.decision_id
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN human_decision_submissions AS d ON d.result_hash = t.digest
JOIN human_decisions AS o ON o.decision_id = d.decision_id
UNION ALL
SELECT NULL, d.resource_id FROM texts AS t CROSS JOIN controller_resources AS d ON d.spec_hash = t.digest
UNION ALL
SELECT NULL, d.resource_id FROM texts AS t CROSS JOIN controller_resources AS d ON d.status_hash = t.digest
UNION ALL
SELECT NULL, d.source_resource_id FROM texts AS t CROSS JOIN effects AS d ON d.payload_hash = t.digest
UNION ALL
SELECT NULL, d.source_resource_id FROM texts AS t CROSS JOIN effects AS d ON d.result_hash = t.digest
UNION ALL
SELECT NULL, o.source_resource_id FROM texts AS t CROSS JOIN effect_attempts AS d ON d.result_hash = t.digest
JOIN effects AS o ON o.effect_id = d.effect_id
UNION ALL
SELECT NULL, d.resource_id FROM texts AS t CROSS JOIN events AS d ON d.payload_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN host_commands AS d ON d.receipt_hash = t.digest
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN worker_messages AS d ON d.result_hash = t.digest
JOIN run_workers AS o ON o.worker_epoch = d.worker_epoch
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN run_workers AS d ON d.launch_envelope_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN viewer_deltas AS d ON d.patch_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN viewer_session_checkpoints AS d ON d.state_hash = t.digest
