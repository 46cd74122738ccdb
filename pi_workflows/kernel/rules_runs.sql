-- As rules_log.sql: one row for each violation, the run that it concerns, or NULL and the resource.

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
-- A run that restarts none is its own root, a recovery too; a restart continues its parent's line and started after it ended. Restarts are counted from
-- parent to child, so that a circle has a run where the count is wrong.
SELECT r.run_id FROM runs AS r LEFT JOIN runs AS p ON p.run_id = r.parent_run_id
LEFT JOIN resources AS s ON s.resource_id = p.resource_id
WHERE (r.parent_run_id IS NULL AND r.root_run_id <> r.run_id)
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
-- A claim that had expired when the newest event was written is one that nobody gave back, and keeps nothing.
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
       OR EXISTS (SELECT 1 FROM leases AS l
                  WHERE l.resource_id = r.resource_id AND l.owner_type IS NOT NULL
                    AND l.expires_at > (SELECT e.recorded_at FROM events AS e
                                        WHERE e.event_seq = (SELECT max(event_seq) FROM events)))
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
       OR r.paused = 1
       AND NOT EXISTS (SELECT 1 FROM effects AS e JOIN blobs AS b ON b.blob_hash = e.payload_hash
                       WHERE e.source_resource_id = r.resource_id AND e.status = 'applying'
                         AND CASE WHEN json_valid(CAST(b.content AS TEXT))
                             THEN json_extract(CAST(b.content AS TEXT), '$.recovery') = 'manual' END))

-- name: intervals
-- The intervals of an attempt are numbered 1..N, and only the last may be open.
SELECT a.run_id FROM (
    SELECT attempt_id, interval_number, ended_at, observed_at,
           row_number() OVER w AS expected, lead(interval_number) OVER w AS following
    FROM attempt_active_intervals WINDOW w AS (PARTITION BY attempt_id ORDER BY interval_number)) AS i
JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
WHERE i.interval_number <> i.expected OR (i.ended_at IS NULL AND i.following IS NOT NULL)
   OR (i.ended_at IS NOT NULL AND i.ended_at <> i.observed_at)

-- name: interval_order
-- Each interval was closed before the next was opened. Clocks step back, so the events tell: the one that opens an
-- interval says when it starts, the one that closes it when it ended. Only runs with a second interval are looked at.
WITH several (run_id, resource_id) AS (
    SELECT DISTINCT r.run_id, r.resource_id
    FROM attempt_active_intervals AS i
    CROSS JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
    CROSS JOIN runs AS r ON r.run_id = a.run_id
    WHERE i.interval_number = 2),
told (run_id, event_seq, interval) AS (
    SELECT s.run_id, e.event_seq,
           CASE WHEN json_valid(CAST(b.content AS TEXT)) THEN CAST(b.content AS TEXT) -> '$.interval' END
    FROM several AS s
    CROSS JOIN events AS e ON e.resource_id = s.resource_id
    CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash)

SELECT run_id FROM (
    SELECT run_id, interval ->> 'started_at' AS opened, interval ->> 'interval_number' AS number,
           lag(interval ->> 'ended_at') OVER w AS closed, lag(interval ->> 'interval_number') OVER w AS before
    FROM told WHERE json_type(interval) = 'object'
    WINDOW w AS (PARTITION BY interval ->> 'attempt_id' ORDER BY event_seq))
WHERE opened IS NOT NULL AND number > 1 AND (closed IS NULL OR before <> number - 1)

-- name: steps
-- Steps are numbered 0..N-1 and name settled attempts of their own run.
SELECT s.run_id FROM (
    SELECT run_id, step_index, attempt_id, row_number() OVER (PARTITION BY run_id ORDER BY step_index) - 1 AS expected
    FROM run_steps) AS s
JOIN node_attempts AS a ON a.attempt_id = s.attempt_id
WHERE s.step_index <> s.expected OR a.run_id <> s.run_id
   OR a.status NOT IN ('completed', 'failed', 'timed_out', 'cancelled')

-- name: updates
-- Progress is numbered 1..N in its attempt, and its run's, which it is never ahead of.
SELECT a.run_id FROM (
    SELECT run_id, attempt_id, update_seq, run_revision,
           row_number() OVER (PARTITION BY attempt_id ORDER BY update_seq) AS expected
    FROM workflow_updates) AS u
JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
JOIN runs AS r ON r.run_id = a.run_id
JOIN resources AS s ON s.resource_id = r.resource_id
WHERE u.update_seq <> u.expected OR u.run_revision > s.revision OR u.run_id <> a.run_id

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
