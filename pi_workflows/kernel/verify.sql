-- Each statement returns one row for each violation: the run it belongs to, or an empty text. Correlated reads go
-- through indexes, so that memory and time grow with the database once, not with its square.

-- name: revision_gap
-- A resource's revisions are 1..N, and N is the resource's own.
SELECT coalesce(r.run_id, '')
FROM resources AS s
LEFT JOIN runs AS r ON r.resource_id = s.resource_id
WHERE (SELECT count(*) FROM events AS e WHERE e.resource_id = s.resource_id) <> s.revision
   OR (SELECT coalesce(max(e.resource_revision), 0) FROM events AS e WHERE e.resource_id = s.resource_id) <> s.revision

-- name: resource_orphan
-- A run or effect belongs to a resource of its own type and key.
SELECT r.run_id FROM runs AS r JOIN resources AS s ON s.resource_id = r.resource_id
WHERE s.resource_type <> 'run' OR s.aggregate_key <> r.run_id
UNION ALL
SELECT '' FROM effects AS e JOIN resources AS s ON s.resource_id = e.resource_id
WHERE s.resource_type <> 'effect' OR s.aggregate_key <> e.effect_id
UNION ALL
SELECT '' FROM resources AS s
WHERE s.resource_type = 'run' AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.resource_id = s.resource_id)
UNION ALL
SELECT '' FROM resources AS s
WHERE s.resource_type = 'effect' AND NOT EXISTS (SELECT 1 FROM effects AS e WHERE e.resource_id = s.resource_id)

-- name: resource_times
-- A resource was last updated by its last event.
SELECT coalesce(r.run_id, '')
FROM resources AS s
LEFT JOIN runs AS r ON r.resource_id = s.resource_id
JOIN events AS e ON e.resource_id = s.resource_id AND e.resource_revision = s.revision
WHERE e.recorded_at <> s.updated_at

-- name: lease_missing
-- Every resource has a lease row.
SELECT coalesce(r.run_id, '')
FROM resources AS s
LEFT JOIN runs AS r ON r.resource_id = s.resource_id
WHERE NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.resource_id = s.resource_id)

-- name: lease_row
-- An owned lease has a generation and a time in order, every generation was claimed, and no event was written under
-- one yet to come.
SELECT coalesce(r.run_id, '')
FROM leases AS l
LEFT JOIN runs AS r ON r.resource_id = l.resource_id
WHERE (l.owner_type IS NOT NULL AND (l.generation = 0 OR l.expires_at <= l.heartbeat_at))
   OR l.generation <> (SELECT count(*) FROM events AS e
                       WHERE e.resource_id = l.resource_id AND e.event_type IN ('lease.claimed', 'effect.attempt_started'))
   OR EXISTS (SELECT 1 FROM events AS e WHERE e.resource_id = l.resource_id AND e.lease_generation > l.generation)

-- name: sequence
-- The counter of event numbers is never behind the numbers that were given.
SELECT '' FROM (SELECT max(event_seq) AS newest FROM events) AS e
WHERE e.newest > coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)

-- name: host_state
-- One row, and no stored epoch is ahead of it.
SELECT '' FROM (SELECT count(*) AS n, max(epoch) AS epoch FROM workflow_host_state) AS h
WHERE h.n <> 1
   OR EXISTS (SELECT 1 FROM host_commands AS c WHERE c.host_epoch > h.epoch)
   OR EXISTS (SELECT 1 FROM run_workers AS w WHERE w.host_epoch > h.epoch)

-- name: queue_state
-- A terminal run and its queue entry agree, save while the settlement is pending.
SELECT r.run_id FROM runs AS r JOIN run_queue AS q ON q.run_id = r.run_id
WHERE (r.status IN ('completed', 'failed', 'timed_out', 'cancelled') OR q.status IN ('done', 'failed', 'cancelled'))
  AND NOT (r.status = 'completed' AND q.status = 'done'
           OR r.status IN ('failed', 'timed_out') AND q.status = 'failed'
           OR r.status = 'cancelled' AND q.status = 'cancelled')
  AND NOT EXISTS (SELECT 1 FROM effects AS e
                  WHERE e.source_resource_id = r.resource_id AND e.effect_type = 'run.settle_queue'
                    AND e.status IN ('pending', 'applying'))

-- name: queue_times
-- A queue entry has an end exactly when it is over.
SELECT run_id FROM run_queue WHERE (finished_at IS NOT NULL) <> (status IN ('done', 'failed', 'cancelled'))

-- name: queue_session
-- An interactive run reserves its session, a headless one none.
SELECT q.run_id FROM run_queue AS q JOIN run_bindings AS b ON b.run_id = q.run_id
WHERE (b.execution_mode = 'interactive' AND q.origin_session_id IS NOT b.origin_session_id)
   OR (b.execution_mode = 'headless' AND q.origin_session_id IS NOT NULL)

-- name: waiting_request
-- A waiting run has a question that is open, or answered and not yet taken.
SELECT r.run_id FROM runs AS r
WHERE r.status = 'waiting'
  AND NOT EXISTS (SELECT 1 FROM interactive_requests AS q
                  WHERE q.run_id = r.run_id
                    AND (q.status = 'pending' OR q.status = 'settled' AND q.consumed_at IS NULL))

-- name: lineage
-- A root is its own root; a restart continues its parent's line and started after it ended.
SELECT r.run_id FROM runs AS r LEFT JOIN runs AS p ON p.run_id = r.parent_run_id
LEFT JOIN resources AS s ON s.resource_id = p.resource_id
WHERE (r.parent_run_id IS NULL AND r.recovery_root_run_id IS NULL AND r.root_run_id <> r.run_id)
   OR (r.parent_run_id IS NOT NULL
       AND (r.root_run_id <> p.root_run_id OR r.restart_number <> p.restart_number + 1
            OR p.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')
            OR r.parent_run_revision > s.revision OR r.run_id = r.parent_run_id))

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
       OR EXISTS (SELECT 1 FROM leases AS l WHERE l.resource_id = r.resource_id AND l.owner_type IS NOT NULL))

-- name: terminal_data
-- A failure has an error, a success has none.
SELECT run_id FROM runs
WHERE (status IN ('failed', 'timed_out') AND error_hash IS NULL) OR (status = 'completed' AND error_hash IS NOT NULL)

-- name: run_source
-- Every run knows where its workflow came from.
SELECT r.run_id FROM runs AS r
WHERE NOT EXISTS (SELECT 1 FROM run_sources AS c WHERE c.run_id = r.run_id AND c.mount_path = '')

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

-- name: interval_numbers
-- The intervals of an attempt are numbered 1..N, and only the last may be open.
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
-- An accepted answer is its question's, and no answer is newer than its question; a taken answer ended its attempt.
SELECT q.run_id FROM interactive_submissions AS s JOIN interactive_requests AS q ON q.request_id = s.request_id
WHERE (s.outcome = 'accepted' AND q.accepted_submission_id IS NOT s.submission_id)
   OR (s.outcome = 'validating' AND q.status <> 'pending') OR s.request_revision > q.revision
UNION ALL
SELECT q.run_id FROM interactive_requests AS q JOIN node_attempts AS a ON a.attempt_id = q.attempt_id
WHERE q.consumed_at IS NOT NULL AND a.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')

-- name: request_target
-- A question goes to the session that its run is bound to.
SELECT q.run_id FROM interactive_requests AS q JOIN run_bindings AS b ON b.run_id = q.run_id
WHERE q.target_session_id <> b.origin_session_id

-- name: effect_state
-- An effect's status, tries and times agree.
SELECT coalesce(r.run_id, '') FROM effects AS e
LEFT JOIN runs AS r ON r.resource_id = e.source_resource_id
JOIN resources AS s ON s.resource_id = e.source_resource_id
JOIN leases AS l ON l.resource_id = e.resource_id
WHERE (e.status IN ('applied', 'rejected', 'cancelled')) <> (e.settled_at IS NOT NULL)
   OR (SELECT count(*) FROM effect_attempts AS t WHERE t.effect_id = e.effect_id) <> e.attempt_count
   OR (SELECT coalesce(max(t.attempt_number), 0) FROM effect_attempts AS t
       WHERE t.effect_id = e.effect_id) <> e.attempt_count
   OR (SELECT count(*) FROM effect_attempts AS t
       WHERE t.effect_id = e.effect_id AND t.finished_at IS NULL) <> (e.status = 'applying')
   OR EXISTS (SELECT 1 FROM effect_attempts AS t
              WHERE t.effect_id = e.effect_id AND t.lease_generation > l.generation)
   OR e.source_revision > s.revision
   OR (e.next_attempt_at IS NOT NULL AND e.status NOT IN ('pending', 'applying'))
   OR (e.attempt_count > 0 AND e.status NOT IN ('pending', 'applying')
       AND NOT EXISTS (SELECT 1 FROM effect_attempts AS t
                       WHERE t.effect_id = e.effect_id AND t.attempt_number = e.attempt_count
                         AND t.outcome = CASE e.status WHEN 'cancelled' THEN 'interrupted' ELSE e.status END)
       AND NOT EXISTS (SELECT 1 FROM events AS v
                       WHERE v.resource_id = e.resource_id AND v.event_type = 'effect.recovered'))

-- name: settlement
-- Only a run with a place in the queue has a result to hand to it.
SELECT coalesce(r.run_id, '') FROM effects AS e LEFT JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.effect_type = 'run.settle_queue'
  AND NOT EXISTS (SELECT 1 FROM run_queue AS q WHERE q.run_id = r.run_id)

-- name: viewer_cursor
-- Every run has a cursor, and the floor trails it by the window.
SELECT r.run_id FROM runs AS r LEFT JOIN viewer_runs AS v ON v.run_id = r.run_id
WHERE v.run_id IS NULL OR v.retained_from_revision <> max(1, v.presentation_revision - 255)

-- name: receipts
-- An accepted command has no error, and no receipt is ahead of its run.
SELECT coalesce(c.run_id, '') FROM host_commands AS c
LEFT JOIN runs AS r ON r.run_id = c.run_id
LEFT JOIN resources AS s ON s.resource_id = r.resource_id
WHERE (c.outcome IN ('accepted', 'adopted') AND c.error_hash IS NOT NULL)
   OR (c.operation LIKE 'run.%' AND c.accepted_revision > s.revision)

-- name: workers
-- A runner has an end exactly when it ended, and never a claim yet to come.
SELECT w.run_id FROM run_workers AS w
JOIN runs AS r ON r.run_id = w.run_id
JOIN leases AS l ON l.resource_id = r.resource_id
WHERE w.generation > l.generation OR (w.finished_at IS NOT NULL) = (w.status IN ('starting', 'ready', 'running'))

-- name: definition
-- A definition is known by the digest of its document.
SELECT coalesce((SELECT r.run_id FROM runs AS r WHERE r.definition_digest = d.definition_digest LIMIT 1), '')
FROM workflow_definitions AS d WHERE d.definition_hash <> d.definition_digest

-- name: effect_keys
-- What the identity of each effect is derived from.
SELECT e.effect_id, e.source_resource_id, e.effect_type, e.idempotency_key, coalesce(r.run_id, '')
FROM effects AS e LEFT JOIN runs AS r ON r.resource_id = e.source_resource_id

-- name: media
-- What is read as JSON is stored as JSON. Errors, prompts and diagnoses are text, which may be JSON too.
SELECT n.run_id FROM (
    SELECT run_id, input_hash AS named FROM runs
    UNION ALL SELECT run_id, final_output_hash FROM runs
    UNION ALL SELECT run_id, launch_options_hash FROM runs
    UNION ALL SELECT '', definition_hash FROM workflow_definitions
    UNION ALL SELECT run_id, output_hash FROM node_attempts
    UNION ALL SELECT run_id, receipt_hash FROM node_attempts
    UNION ALL SELECT run_id, contract_hash FROM interactive_requests
    UNION ALL SELECT q.run_id, s.payload_hash
    FROM interactive_submissions AS s JOIN interactive_requests AS q ON q.request_id = s.request_id
    UNION ALL SELECT a.run_id, u.data_hash
    FROM workflow_updates AS u JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
    UNION ALL SELECT coalesce(r.run_id, ''), e.payload_hash
    FROM effects AS e LEFT JOIN runs AS r ON r.resource_id = e.source_resource_id
    UNION ALL SELECT coalesce(r.run_id, ''), e.result_hash
    FROM effects AS e LEFT JOIN runs AS r ON r.resource_id = e.source_resource_id
    UNION ALL SELECT '', result_hash FROM effect_attempts
    UNION ALL SELECT coalesce(r.run_id, ''), e.payload_hash
    FROM events AS e LEFT JOIN runs AS r ON r.resource_id = e.resource_id
    UNION ALL SELECT coalesce(run_id, ''), receipt_hash FROM host_commands
    UNION ALL SELECT w.run_id, m.result_hash
    FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
    UNION ALL SELECT run_id, launch_envelope_hash FROM run_workers) AS n
JOIN blobs AS b ON b.blob_hash = n.named
WHERE b.media_type <> 'application/json'

-- name: client_receipts
-- Every receipt of a client's command.
SELECT request_id, client_id, operation, idempotency_key, request_fingerprint, accepted_revision, outcome,
       receipt_hash, error_hash, host_epoch, created_at, completed_at, row_digest, coalesce(run_id, '')
FROM host_commands

-- name: runner_receipts
-- Every receipt of a runner's message.
SELECT m.worker_epoch, m.message_id, m.request_fingerprint, m.outcome, m.accepted_revision, m.result_hash,
       m.error_hash, m.completed_at, m.row_digest, w.run_id
FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch

-- name: integrity
-- SQLite's own check; the one row `ok` is no violation.
SELECT '' FROM pragma_integrity_check WHERE integrity_check <> 'ok'

-- name: foreign_keys
SELECT '' FROM pragma_foreign_key_check

-- name: event_types
-- The type of every event beside its resource's.
SELECT e.event_type, s.resource_type, coalesce(r.run_id, '')
FROM events AS e
JOIN resources AS s ON s.resource_id = e.resource_id
LEFT JOIN runs AS r ON r.resource_id = e.resource_id
ORDER BY e.event_seq

-- name: blobs
-- Every stored value.
SELECT blob_hash, media_type, content FROM blobs

-- name: previous_digest
-- The digest that an event's own is chained to.
SELECT event_digest FROM events WHERE resource_id = :resource_id AND resource_revision = :revision

-- name: run_of_resource
-- The run that a resource is.
SELECT run_id FROM runs WHERE resource_id = :resource_id

-- name: linked_blobs
-- The values that an event keeps alive.
SELECT blob_hash FROM event_blobs WHERE event_seq = :event_seq ORDER BY blob_hash
